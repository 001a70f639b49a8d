/*
 * Where a trace comes from. See origin.h.
 */
#include "vm_trace/session/origin.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct {
    bool known;
    char host[256], service[128], version[128];
} origin;

/* The byte of "%HH"; -1: it is none. */
static int
percent_byte(const char *text, size_t bytes)
{
    char digits[3] = "", *end;
    if (bytes < sizeof(digits) || text[0] != '%') return -1;
    memcpy(digits, text + 1, 2);
    long byte = strtol(digits, &end, 16);
    return end == digits + 2 && isxdigit((unsigned char)digits[0]) ? (int)byte : -1;
}

/* A copy with each %HH as its byte, cut to the room. */
static void
decode(char *to, size_t room, const char *text, size_t bytes)
{
    size_t at = 0;
    for (size_t i = 0; i < bytes && at + 1 < room; i++) {
        int byte = percent_byte(text + i, bytes - i);
        to[at++] = byte < 0 ? text[i] : (char)byte;
        if (byte >= 0) i += 2;
    }
    to[at] = '\0';
}

/* The value of a key in "key=value,key=value"; "" without it. */
static void
read_attribute(char *to, size_t room, const char *attributes, const char *key)
{
    size_t key_bytes = strlen(key);
    to[0] = '\0';
    for (const char *item = attributes; *item; item += *item == ',') {
        item += strspn(item, " ");
        size_t bytes = strcspn(item, ",");
        if (bytes > key_bytes && strncmp(item, key, key_bytes) == 0 && item[key_bytes] == '=')
            decode(to, room, item + key_bytes + 1, bytes - key_bytes - 1);
        item += bytes;
    }
}

void
rb_vm_trace_origin_init(void)
{
    if (origin.known) return;
    origin.known = true;
    const char *attributes = getenv("OTEL_RESOURCE_ATTRIBUTES"), *service = getenv("OTEL_SERVICE_NAME");
    if (gethostname(origin.host, sizeof(origin.host) - 1) != 0) origin.host[0] = '\0';
    read_attribute(origin.service, sizeof(origin.service), attributes ? attributes : "", "service.name");
    read_attribute(origin.version, sizeof(origin.version), attributes ? attributes : "", "service.version");
    if (service && *service) snprintf(origin.service, sizeof(origin.service), "%s", service);
}

const char *
rb_vm_trace_origin_host(void)
{
    return origin.host;
}

/* The time of day at a time of the trace. */
static uint64_t
unix_ns(uint64_t ns)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec - rb_vm_trace_clock_system_ns() + ns;
}

/* Names and values are rare, so no chunk defines them beforehand. */
static bool
write_text(struct vm_trace_event *event, const char *name, const char *text)
{
    struct vm_trace_slot slot;
    size_t bytes = strlen(text);
    char *copy;
    const char *clean = rb_vm_trace_text_clean(text, &bytes, &copy);
    bool ok = rb_vm_trace_writer_define(event->writer, &slot, name, strlen(name)) &&
        event_text(event, (enum known_string)slot.index, clean, bytes);
    free(copy);
    return ok;
}

bool
rb_vm_trace_write_origin(struct rb_vm_trace_ractor *ractor, struct rb_execution_context_struct *ec, const void *what)
{
    static const char NAME[] = "host";
    (void)what;
    uint64_t now_ns = clock_now_ns(&ractor->clock);
    struct vm_trace_event event;
    struct vm_trace_slot name;
    bool ok = rb_vm_trace_event_begin(&event, ractor, ec, now_ns) &&
        rb_vm_trace_writer_define(event.writer, &name, NAME, sizeof(NAME) - 1) &&
        write_text(&event, NAME, origin.host) && rb_vm_trace_event_setting(&event, "unix_ns", unix_ns(now_ns));
    if (ok && origin.service[0]) ok = write_text(&event, "service", origin.service);
    if (ok && origin.version[0]) ok = write_text(&event, "version", origin.version);
    return ok && event_end(&event, FXT_EVENT_INSTANT, STRING_TRACE, (enum known_string)name.index);
}
