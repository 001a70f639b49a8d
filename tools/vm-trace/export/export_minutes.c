/* export_minutes.c - see export_minutes.h */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "export/minute_profiles.h"
#include "base/output_file.h"
#include "base/path_part.h"
#include "export/export.h"
#include "export/export_minutes.h"

#define MINUTE_NS INT64_C(60000000000)

static enum status
write_minute(const struct minute_profiles *profiles, const struct minute_profile *row, const char *folder)
{
    const struct pool *pool = reader_pool(profiles->reader);
    char *service = path_part(pool_string(pool, row->service)), *version = path_part(pool_string(pool, row->version));
    char *path = xformat("%s/%s/%s", folder, service, version);
    char *comment = xformat("service=%s version=%s", service, version);
    char time_text[sizeof "2026-11-26T1238Z"] = "";
    time_t seconds = (time_t)row->minute * 60;
    struct tm utc;
    if (gmtime_r(&seconds, &utc) != NULL) strftime(time_text, sizeof time_text, "%Y-%m-%dT%H%MZ", &utc);
    char *file = xformat("%s/%s.pb.gz", path, time_text);
    char *partial = minute_profiles_complete(profiles)
                        ? fxt_parts_line(&profiles->parts)
                        : xformat("some stacks are cut: the profiles need more than %zu MiB (--memory=MIB grants more)",
                                  profiles->memory_bytes >> 20);
    const struct pprof_origin origin = {row->minute * MINUTE_NS, MINUTE_NS, comment, partial};
    struct output output;
    enum status status = STATUS_CANNOT_READ;
    if (make_folders(path) && output_open(&output, OUTPUT_GZIP, file, 0, NULL)) {
        export_pprof_together(output.file, row->values, MINUTE_VALUES, &origin);
        status = output_close(&output, STATUS_FINE);
    }
    free(service);
    free(version);
    free(path);
    free(comment);
    free(partial);
    free(file);
    return status;
}

enum status
export_minutes(const char *folder, const struct trace_choice *choice, size_t memory_bytes, uint64_t max_faults,
               int file_count, char **files)
{
    struct minute_profiles *profiles = minute_profiles_new(choice, memory_bytes, max_faults);
    enum status status = STATUS_FINE;
    int skipped = 0;
    for (int i = 0; i < file_count; i++) {
        enum status read = minute_profiles_read(profiles, files[i]);
        skipped += read >= STATUS_USAGE;
        status = worse(status, read);
    }
    for (uint32_t i = 0; i < profiles->rows.count; i++)
        status = worse(status, write_minute(profiles, row_table_at(&profiles->rows, i), folder));
    if (!minute_profiles_complete(profiles)) {
        fprintf(stderr, "vm-trace: the profiles need more than %zu MiB, so some stacks are cut (--memory=MIB grants"
                " more)\n", memory_bytes >> 20);
        status = worse(status, STATUS_FAULTS);
    }
    printf("%" PRIu32 " profile%s of %d trace%s written to ", profiles->rows.count,
           profiles->rows.count == 1 ? "" : "s", file_count - skipped, file_count - skipped == 1 ? "" : "s");
    print_file_name(stdout, folder);
    if (skipped > 0) printf(", %d skipped", skipped);
    putchar('\n');
    minute_profiles_free(profiles);
    return worse(status, finish_output());
}
