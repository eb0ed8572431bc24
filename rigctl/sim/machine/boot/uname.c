/* Preloaded on simulated rigs: uname(2) names the rig's kernel, which is not the host's. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

int uname(struct utsname *name) {
  long status = syscall(SYS_uname, name);
  if (status == 0) {
    strncpy(name->release, RELEASE, sizeof name->release - 1);
    strncpy(name->version, "#101-Ubuntu SMP", sizeof name->version - 1);
  }
  return (int)status;
}
