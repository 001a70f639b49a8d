/*
 * Globs of methods and files. See method_filter.h.
 */
#include "vm_trace/capture/method_filter.h"
#include "vm_trace/vm_trace_jit.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *methods_given, **methods; /* as given; each alone, a NULL behind them */

bool
rb_vm_trace_parse_methods(const char *option, const char *value)
{
    size_t count = 1, n = 0;
    for (const char *p = value; *p; p++) count += *p == ',';
    char *given = strdup(value), *parts = strdup(value), **globs = calloc(count + 1, sizeof(*globs));
    bool ok = given && parts && globs;
    for (char *at = parts; ok && at; n++) {
        globs[n] = at;
        at = strchr(at, ',');
        if (at) *at++ = '\0';
        ok = *globs[n] != '\0';
    }
    if (!ok) {
        fprintf(stderr, "%s takes globs of methods or files, such as 'Foo#*' or '*/app/*.rb', with commas between them, not '%s'\n",
                option, value);
        free(given);
        free(parts);
        free(globs);
        return false;
    }
    if (methods) free(methods[0]);
    free(methods);
    free(methods_given);
    methods_given = given;
    methods = globs;
    return true;
}

bool
rb_vm_trace_methods_requested_p(void)
{
    return methods != NULL;
}

const char *
rb_vm_trace_methods(void)
{
    return methods_given;
}

/* "block (2 levels) in Foo#bar" is in Foo#bar. */
static const char *
method_around(const char *method)
{
    static const char *const kinds[] = { "block ", "rescue ", "ensure " };
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); ) {
        const char *in = strncmp(method, kinds[i], strlen(kinds[i])) == 0 ? strstr(method, "in ") : NULL;
        if (in) method = in + 3, i = 0;
        else i++;
    }
    return method;
}

/* What follows the owner in a name or a glob; all of it where there is none. */
static const char *
without_owner(const char *name)
{
    const char *hash = strrchr(name, '#'), *dot = strrchr(name, '.');
    const char *last = hash ? hash : dot;
    return last && last[1] ? last + 1 : name;
}

static bool
glob_asks(const char *glob, const char *method, const char *path)
{
    if (fnmatch(glob, method, 0) == 0 || fnmatch(glob, path, 0) == 0) return true;
    return !strchr(glob, '/') && without_owner(method) == method && fnmatch(without_owner(glob), method, 0) == 0;
}

bool
rb_vm_trace_method_requested_p(const char *label, size_t bytes)
{
    if (!methods) return true;
    char text[4096]; /* of a longer one the end is missing */
    if (bytes >= sizeof(text)) bytes = sizeof(text) - 1;
    memcpy(text, label, bytes);
    text[bytes] = '\0';
    const char *method = method_around(text), *path = "";
    char *place = strstr(method, " (");
    if (place && strncmp(place, " (required)", 11) == 0) place = strstr(place + 2, " (");
    if (place) {
        *place = '\0';
        path = place + 2;
        char *line = strrchr(path, ':');
        if (line) *line = '\0';
    }
    for (char **glob = methods; *glob; glob++) {
        if (glob_asks(*glob, method, path)) return true;
    }
    return false;
}
