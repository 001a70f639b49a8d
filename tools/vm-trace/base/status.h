#ifndef STATUS_H
#define STATUS_H
/* status.h - the tool's exit statuses, as --help and the man page list them. */

enum status {
    STATUS_FINE = 0,
    STATUS_FAULTS = 1,
    STATUS_USAGE = 2,
    STATUS_CANNOT_READ = 3,
    STATUS_NOT_A_TRACE = 4,
    STATUS_DIFF_FAULTS = 5, /* of diff, whose 1 is a limit that is exceeded */
};

/* Of several files the worst status counts. */
static inline enum status
worse(enum status a, enum status b)
{
    return a > b ? a : b;
}

#endif
