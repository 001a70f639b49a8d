/* deploys.c - see deploys.h */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diff/deploys.h"
#include "analysis/trace_host.h"
#include "base/escape.h"
#include "base/message.h"
#include "base/nearest.h"
#include "base/row_table.h"

enum { VERSIONS_MAX = 1024 * 1024 };

/* A trace, by the first process in it that has a host. */
struct origin_of_trace {
    struct pool *pool;
    struct trace_host host;
    int64_t first_ns;
};

struct version {
    uint32_t service, version; /* the key: strings of the pool */
    int64_t deployed_ns;       /* Unix time */
};
enum { VERSION_KEYS = 2 };

struct search {
    struct reader *reader;
    struct row_table versions; /* of struct version */
    uint32_t *version_of;      /* by file; ROW_NONE: it does not count */
    uint32_t skipped;
};

static void
on_event(void *context, const struct fxt_event *event)
{
    struct origin_of_trace *trace = context;
    if (event->ts_ns < trace->first_ns) trace->first_ns = event->ts_ns;
    if (origin_event_p(event)) trace_host_event(&trace->host, trace->pool, event);
}

static enum status
read_origin(struct search *search, char *file, uint32_t number)
{
    struct origin_of_trace trace = {.pool = reader_pool(search->reader), .first_ns = INT64_MAX};
    const struct fxt_visitor visitor = {.context = &trace, .event = on_event};
    int error = reader_read(search->reader, file, &visitor);
    uint32_t known = search->versions.count;
    const struct origin *origin = &trace.host.origin;
    search->version_of[number] = ROW_NONE;
    if (error != 0 || !trace.host.known || origin->version == STRING_NONE) {
        file_message(file, error != 0 ? strerror(error) : "names no version of a service (service.version in "
                     "OTEL_RESOURCE_ATTRIBUTES): skipped");
        search->skipped++;
        return error != 0 ? STATUS_CANNOT_READ : STATUS_FAULTS;
    }
    const uint32_t key[VERSION_KEYS] = {origin->service, origin->version};
    struct version *version = row_table_get(&search->versions, key);
    if (version == NULL) return STATUS_FAULTS;
    int64_t begun_ns = time_sum(origin->unix_offset_ns, trace.first_ns);
    if (search->versions.count > known || begun_ns < version->deployed_ns) version->deployed_ns = begun_ns;
    search->version_of[number] = row_table_number(&search->versions, version);
    return STATUS_FINE;
}

/* The latest version of a service that was deployed before a time; ROW_NONE: there is none. */
static uint32_t
latest_before(const struct search *search, uint32_t service, int64_t before_ns)
{
    uint32_t latest = ROW_NONE;
    for (uint32_t i = 0; i < search->versions.count; i++) {
        const struct version *version = row_table_at(&search->versions, i), *best;
        if (version->service != service || version->deployed_ns >= before_ns) continue;
        best = latest == ROW_NONE ? NULL : row_table_at(&search->versions, latest);
        if (best == NULL || version->deployed_ns > best->deployed_ns) latest = i;
    }
    return latest;
}

/* Returns the service to compare, or STRING_NONE after a message. */
static uint32_t
choose_service(const struct search *search, const char *wanted)
{
    const struct pool *pool = reader_pool(search->reader);
    uint32_t found = STRING_NONE;
    struct nearest nearest = nearest_to(wanted != NULL ? wanted : "");
    for (uint32_t i = 0; i < search->versions.count; i++) {
        const struct version *version = row_table_at(&search->versions, i);
        struct fxt_string name = pool_string(pool, version->service);
        if (wanted != NULL) nearest_try(&nearest, name.ptr);
        if (wanted != NULL && !fxt_string_is(name, wanted)) continue;
        if (found != STRING_NONE && found != version->service) {
            message("diff: there are traces of %s and %s: choose one with --service=NAME",
                    pool_string(pool, found).ptr, name.ptr);
            return STRING_NONE;
        }
        found = version->service;
    }
    if (found == STRING_NONE)
        message("diff: there are no traces of %s%s with a version%s%s%s", wanted ? "the service " : "a service",
                wanted ? wanted : "", nearest.name ? "; did you mean " : "", nearest.name ? nearest.name : "",
                nearest.name ? "?" : "");
    return found;
}

static void
add_files(struct deploy *deploy, const struct search *search, uint32_t version, int file_count, char **files)
{
    for (int i = 0; i < file_count; i++) {
        if (search->version_of[i] == version) deploy->files[deploy->count++] = files[i];
    }
}

static enum status
choose(struct deploy *deploy, const struct search *search, const char *service, int file_count, char **files)
{
    const struct pool *pool = reader_pool(search->reader);
    uint32_t chosen = choose_service(search, service);
    if (chosen == STRING_NONE) return STATUS_USAGE;
    uint32_t after = latest_before(search, chosen, INT64_MAX);
    const struct version *new = row_table_at(&search->versions, after);
    uint32_t before = latest_before(search, chosen, new->deployed_ns);
    const char *name = pool_string(pool, chosen).ptr, *version = pool_string(pool, new->version).ptr;
    if (before == ROW_NONE) {
        message("diff: %s has only the version %s here: there is nothing to compare", name, version);
        return STATUS_USAGE;
    }
    const struct version *old = row_table_at(&search->versions, before);
    deploy->names[0] = xformat("%s %s", name, pool_string(pool, old->version).ptr);
    deploy->names[1] = xformat("%s %s", name, version);
    add_files(deploy, search, before, file_count, files);
    deploy->old_count = deploy->count;
    add_files(deploy, search, after, file_count, files);
    return STATUS_FINE;
}

enum status
deploy_find(struct deploy *deploy, size_t memory_bytes, const char *service, int file_count, char **files)
{
    struct search search = {.reader = reader_new(memory_bytes)};
    enum status status = STATUS_FINE;
    row_table_init(&search.versions, sizeof(struct version), VERSION_KEYS, VERSIONS_MAX);
    search.version_of = xcalloc((size_t)file_count + 1, sizeof *search.version_of);
    *deploy = (struct deploy){.files = xcalloc((size_t)file_count + 1, sizeof *deploy->files)};
    for (int i = 0; i < file_count; i++) status = worse(status, read_origin(&search, files[i], (uint32_t)i));
    enum status chosen = choose(deploy, &search, service, file_count, files);
    if (search.skipped > 0)
        fprintf(stderr, "vm-trace: diff: %" PRIu32 " of %d traces skipped\n", search.skipped, file_count);
    row_table_free(&search.versions);
    free(search.version_of);
    reader_free(search.reader);
    return chosen == STATUS_FINE ? (status > STATUS_FAULTS ? STATUS_FAULTS : status) : chosen;
}

void
deploy_free(struct deploy *deploy)
{
    free(deploy->files);
    free(deploy->names[0]);
    free(deploy->names[1]);
}
