/* What the probes are held against: the same operations, written without them.

   beside NAME COUNT BATCHES [PROGRAM] prints the nanoseconds of one operation, a line for each
   batch of COUNT. Static, so that a fork copies little; PROGRAM is what `exec` executes. */

#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *program;

static void need(int held, const char *what) {
  if (held) return;
  perror(what);
  exit(1);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1e9 + time.tv_nsec;
}

static double null_call(long count) {
  long parent = getppid();
  double before = now();
  for (long i = 0; i < count; i++) need(syscall(SYS_getppid) == parent, "getppid");
  return now() - before;
}

static double children(long count) {
  double before = now();
  for (long i = 0; i < count; i++) {
    int status;
    pid_t child = fork();
    need(child >= 0, "fork");
    if (child == 0) {
      if (program) execl(program, program, (char *)NULL);
      _exit(program ? 1 : 0);
    }
    need(waitpid(child, &status, 0) == child && status == 0, "child");
  }
  return now() - before;
}

static double page_fault(long count) {
  /* Whole rooms: with fewer pages at once they would be the same few again. */
  const long page = sysconf(_SC_PAGESIZE), pages = 4096, rooms = (count + pages - 1) / pages;
  double took = 0;
  prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
  for (long i = 0; i < rooms; i++) {
    volatile char *room = mmap(NULL, pages * page, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(room != MAP_FAILED, "mmap");
    double before = now();
    for (long touched = 0; touched < pages; touched++) room[touched * page] = 1;
    took += now() - before;
    need(munmap((void *)room, pages * page) == 0, "munmap");
  }
  return took * count / (rooms * pages);
}

static void *same(void *given) { return given; }

static double thread(long count) {
  double before = now();
  for (long i = 0; i < count; i++) {
    pthread_t started;
    void *answer;
    char given;
    need(pthread_create(&started, NULL, same, &given) == 0, "pthread_create");
    need(pthread_join(started, &answer) == 0 && answer == &given, "pthread_join");
  }
  return now() - before;
}

static double pipes(long count) {
  int there[2], back[2];
  char byte = 'x';
  need(pipe(there) == 0 && pipe(back) == 0, "pipe");
  pid_t child = fork();
  need(child >= 0, "fork");
  if (child == 0) {
    close(there[1]);
    while (read(there[0], &byte, 1) == 1) need(write(back[1], &byte, 1) == 1, "write");
    _exit(0);
  }
  close(there[0]);
  double before = now();
  for (long i = 0; i < count; i++) {
    need(write(there[1], &byte, 1) == 1, "write");
    need(read(back[0], &byte, 1) == 1, "read");
  }
  double took = now() - before;
  close(there[1]);
  close(back[0]);
  close(back[1]);
  need(waitpid(child, NULL, 0) == child, "wait");
  return took;
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    double (*work)(long);
  } works[] = {{"null_call", null_call},   {"fork", children}, {"exec", children},
               {"page_fault", page_fault}, {"thread", thread}, {"pipe", pipes}};
  need(argc >= 4, "beside NAME COUNT BATCHES [PROGRAM]");
  long count = atol(argv[2]), batches = atol(argv[3]);
  program = argc > 4 ? argv[4] : NULL;
  for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
    if (strcmp(works[i].name, argv[1]) != 0) continue;
    works[i].work(count > 8 ? count / 8 : 1);
    for (long batch = 0; batch < batches; batch++)
      printf("%.3f\n", works[i].work(count) / count);
    return 0;
  }
  need(0, argv[1]);
}
