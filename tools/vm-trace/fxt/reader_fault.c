/* reader_fault.c - counts the faults of a file and passes them on; a fatal one ends reading. See reader.h. */
#include <stdarg.h>
#include <stdio.h>

#include "fxt/reader_internal.h"

static const enum fxt_severity severities[] = {
#define FXT_FAULT_SEVERITY(name, severity, stat) FXT_##severity,
    FXT_FAULTS(FXT_FAULT_SEVERITY)
#undef FXT_FAULT_SEVERITY
};

static const char *const stats[] = {
#define FXT_FAULT_STAT(name, severity, stat) stat,
    FXT_FAULTS(FXT_FAULT_STAT)
#undef FXT_FAULT_STAT
};

const char *
fxt_fault_stat(enum fxt_fault_code code)
{
    return stats[code];
}

uint64_t
reader_damage(const struct reader *reader)
{
    uint64_t damaged = 0;
    for (unsigned code = 0; code < FXT_FAULT_END_WITHOUT_BEGIN; code++)
        damaged += severities[code] == FXT_FAULT ? reader->counts.faults[code] : 0;
    return damaged;
}

void
reader_fault(struct reader *reader, enum fxt_fault_code code, uint64_t offset, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);

    reader->counts.faults[code]++;
    if (severities[code] == FXT_FATAL) {
        if (!reader->stopped) reader->stopped_by = xformat("%s", text);
        reader->stopped = true;
    }
    struct fxt_fault fault = {.code = code, .severity = severities[code], .offset = offset, .text = text};
    if (reader->visitor.fault) reader->visitor.fault(reader->visitor.fault_context, &fault);
}

void
reader_out_of_budget(struct reader *reader)
{
    if (reader->stopped) return;
    reader_fault(reader, FXT_FAULT_OUT_OF_BUDGET, reader->offset,
                 "names and tables need more than %zu MiB; reading ends here (--memory=MIB grants more, vm-trace cut "
                 "makes a shorter trace)",
                 reader->budget.limit_bytes >> 20);
}
