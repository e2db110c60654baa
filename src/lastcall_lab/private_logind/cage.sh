#!/bin/sh
# cage.sh STATE COMMAND...: the first process of new mount, IPC, network and PID namespaces. Hides the machine from
# COMMAND and becomes it. STATE holds what COMMAND sees in place of /run, /etc/systemd and the vendor's drop-ins. What is
# mounted below $CAGE_SHARED, if it is set, COMMAND and the machine have in common.
set -eu
state=$1
shift
if [ -n "${CAGE_SHARED:-}" ]; then
  while read -r _ _ _ _ path _; do [ "$path" = "$CAGE_SHARED" ] || mount --make-private "$path"; done </proc/self/mountinfo
else
  mount --make-rprivate /
fi
# In a user namespace the kernel refuses a new /proc where parts of the old one are covered; the old one does no harm.
mount -t proc proc /proc 2>/dev/null || true
# logind opens the virtual terminals if it finds the first; they belong to the machine.
if [ -e /dev/tty0 ]; then mount --bind /dev/null /dev/tty0; fi
mount --bind "$state/etc/systemd" /etc/systemd
for vendor in usr/lib/systemd/logind.conf.d usr/local/lib/systemd/logind.conf.d; do
  if [ -d "/$vendor" ]; then mount --bind "$state/$vendor" "/$vendor"; fi
done
# Kept over restarts of logind: the locks are FIFOs in /run/systemd/inhibit. For that, $state must not lie in /run.
mount --bind "$state/run" /run
exec "$@"
