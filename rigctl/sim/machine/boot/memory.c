/* Preloaded while the fault `host_memory_errors` lasts: memory that forgets. In the workers of stress-ng, and nowhere
 * else, one bit of the largest mapping turns round again and again, as a bad module's does. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define FAULT "/var/lib/rigsim/host-memory-errors"
enum { LEAST = 1 << 20, PAUSE_US = 2000 };

static volatile uintptr_t weak; /* the address whose bit turns round */

static void *forget(void *unused) {
  (void)unused;
  for (;;) {
    uint8_t byte;
    struct iovec here = {&byte, 1}, there = {(void *)weak, 1};
    /* Through the kernel: a mapping that is gone by now is an error there and no crash here. */
    if (weak != 0 && process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1) {
      byte ^= 1;
      process_vm_writev(getpid(), &here, 1, &there, 1, 0);
    }
    usleep(PAUSE_US);
  }
  return NULL;
}

static int is_worker(void) {
  char name[64] = "";
  FILE *file = fopen("/proc/self/comm", "re");
  if (file == NULL) return 0;
  if (fgets(name, sizeof name, file) == NULL) name[0] = '\0';
  fclose(file);
  return strncmp(name, "stress-ng", 9) == 0;
}

void *mmap(void *wished, size_t length, int protection, int flags, int file, off_t offset) {
  static pthread_t thread;
  static pid_t started_in;
  void *found = (void *)syscall(SYS_mmap, wished, length, protection, flags, file, offset);
  if (found == MAP_FAILED || length < LEAST || !(flags & MAP_ANONYMOUS) || !(protection & PROT_WRITE)) return found;
  if (access(FAULT, F_OK) != 0 || !is_worker()) return found;
  weak = (uintptr_t)found + length / 2;
  if (started_in != getpid() && pthread_create(&thread, NULL, forget, NULL) == 0) started_in = getpid();
  return found;
}

void *mmap64(void *wished, size_t length, int protection, int flags, int file, off_t offset)
    __attribute__((alias("mmap")));
