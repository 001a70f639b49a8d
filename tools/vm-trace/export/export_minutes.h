#ifndef EXPORT_MINUTES_H
#define EXPORT_MINUTES_H
/* export_minutes.h - `vm-trace export --format=pprof --by=minute`: traces of a fleet as one profile for each
 * service, version and minute: FOLDER/SERVICE/VERSION/2026-11-26T1238Z.pb.gz. */
#include <stddef.h>
#include <stdint.h>

#include "topics/choice.h"
#include "base/status.h"

/* Reads each file several times (export/minute_profiles.h), and prints on stdout how many profiles were written.
 * A trace that is of no use is reported, and the others count. Returns the worst status. */
enum status export_minutes(const char *folder, const struct trace_choice *choice, size_t memory_bytes,
                           uint64_t max_faults, int file_count, char **files);

#endif
