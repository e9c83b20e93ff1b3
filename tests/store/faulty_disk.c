/* Preloaded into a process: counts the calls that change files, and at the n-th of them either kills the process or
   lets the disk be full from there on. Standard streams do not count. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { OFF, COUNT, KILL, FULL };
static int mode = OFF, at = 0, calls = 0;

void faulty_disk(int new_mode, int n) { mode = new_mode, at = n, calls = 0; }
int faulty_disk_calls(void) { return calls; }

/* Returns 1 if the call must fail. `needs_room` says whether a full disk stops it. */
static int strike(int needs_room) {
    if (mode == OFF) return 0;
    calls++;
    if (mode == KILL && calls == at) kill(getpid(), SIGKILL);
    if (mode == FULL && calls >= at && needs_room) {
        errno = ENOSPC;
        return 1;
    }
    return 0;
}

#define REAL(type, name, ...) static type (*real)(__VA_ARGS__); if (!real) real = dlsym(RTLD_NEXT, name)

ssize_t write(int fd, const void *data, size_t size) {
    REAL(ssize_t, "write", int, const void *, size_t);
    if (fd > 2 && mode != OFF) {
        /* Half of it is written before the end comes. */
        if (mode == KILL && calls + 1 == at && size > 1) real(fd, data, size / 2);
        if (strike(1)) return -1;
    }
    return real(fd, data, size);
}

#define OPEN(name)                                                                     \
    int name(const char *path, int flags, ...) {                                       \
        REAL(int, #name, const char *, int, ...);                                      \
        va_list rest;                                                                  \
        va_start(rest, flags);                                                         \
        mode_t permissions = (flags & (O_CREAT | __O_TMPFILE)) ? va_arg(rest, mode_t) : 0; \
        va_end(rest);                                                                  \
        if ((flags & (O_CREAT | O_TRUNC)) && strike(flags & O_CREAT)) return -1;       \
        return real(path, flags, permissions);                                         \
    }
OPEN(open)
OPEN(open64)

#define ONE(type, name, room, parameters, arguments, ...)      \
    type name parameters {                                     \
        REAL(type, #name, __VA_ARGS__);                        \
        if (strike(room)) return -1;                           \
        return real arguments;                                 \
    }
ONE(int, fsync, 0, (int fd), (fd), int)
ONE(int, rename, 0, (const char *a, const char *b), (a, b), const char *, const char *)
ONE(int, link, 1, (const char *a, const char *b), (a, b), const char *, const char *)
ONE(int, unlink, 0, (const char *a), (a), const char *)
ONE(int, rmdir, 0, (const char *a), (a), const char *)
ONE(int, mkdir, 1, (const char *a, mode_t m), (a, m), const char *, mode_t)
ONE(int, chmod, 0, (const char *a, mode_t m), (a, m), const char *, mode_t)
ONE(int, ftruncate, 1, (int fd, off_t n), (fd, n), int, off_t)
ONE(int, ftruncate64, 1, (int fd, off64_t n), (fd, n), int, off64_t)
