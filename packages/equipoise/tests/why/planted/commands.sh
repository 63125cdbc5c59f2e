# Runs a command that does nothing: a program, or the shell's own.
command=$1
left=$2
while [ "$left" -gt 0 ]; do
    $command
    left=$((left - 1))
done
