# One container's shim. launch.py has made it the leader of a session and the subreaper of its descendants.
# Arguments: the container's directory, its log file, then the command line of its main process (enter.py).
directory=$1
log=$2
shift 2
exec 2> /dev/null # or the shell would write "Killed" there

# In the foreground: a shell has SIGINT and SIGQUIT ignored in what it starts in the background.
"$@" < /dev/null >> "$log" 2>&1
echo $? > "$directory/exit"

# As at the end of a PID namespace, nothing outlives the main process. While `sleep` is waited for, the shell reaps
# what was killed. What does not even die of SIGKILL (a hung disk) is left behind after some nine seconds.
for pause in 0.005 0.01 0.02 0.05 0.1 0.2 0.5 1 2 5; do
    children=
    read -r children < /proc/$$/task/$$/children
    [ -n "$children" ] || break
    kill -KILL $children
    sleep $pause
done
