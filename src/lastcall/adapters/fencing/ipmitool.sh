#!/bin/sh
# fence_ipmilan gives a password to ipmitool as an argument, which everybody on the machine can read. It is told to run
# this in ipmitool's place, and in the password's place is given the name of a file that has it.
for argument; do
  shift
  case $argument in
    -P) flag=-P; continue ;;
  esac
  if [ -n "$flag" ]; then
    case $argument in
      /proc/*/fd/*) set -- "$@" -f "$argument" ;;
      *) set -- "$@" -P "$argument" ;;
    esac
    flag=
  else
    set -- "$@" "$argument"
  fi
done
exec ipmitool "$@"
