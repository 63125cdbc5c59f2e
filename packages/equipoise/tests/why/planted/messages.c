/* Sends bytes through a pipe to a child, in so many messages. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 1 << 20 };

int main(int count, char **words) {
    if (count < 2) return 2;
    int messages = atoi(words[1]), size = BYTES / messages, ends[2];
    static char buffer[BYTES];
    if (pipe(ends) != 0) return 1;
    pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) {
        close(ends[1]);
        while (read(ends[0], buffer, sizeof buffer) > 0) continue;
        _exit(0);
    }
    close(ends[0]);
    for (int at = 0; at < messages; at++)
        if (write(ends[1], buffer, size) != size) return 1;
    close(ends[1]);
    return waitpid(child, NULL, 0) == child ? 0 : 1;
}
