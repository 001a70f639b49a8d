/*
 * Where a trace comes from: the event `host`.
 */
#include "harness.h"
#include "traced.h"
#include "vm_trace/session/origin.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *names[] = { "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES" };

/* The trace of a process with these variables. */
static struct trace *
traced_with(const char *service, const char *attributes)
{
    const char *values[] = { service, attributes };
    for (int i = 0; i < 2; i++) {
        if (values[i]) setenv(names[i], values[i], 1);
        else unsetenv(names[i]);
    }
    start_traced(.exit_rate = 1);
    return finish_traced();
}

static void
assert_text(const struct trace_event *event, const char *name, const char *expected)
{
    if (expected) assert_string_equal(trace_text(event, name), expected);
    else assert_null(trace_argument(event, name));
}

static void
first_and_last_host_have_name_and_time_of_day(void **state)
{
    (void)state;
    char name[256] = "";
    gethostname(name, sizeof(name) - 1);
    uint64_t before = (uint64_t)time(NULL);
    struct trace *trace = traced_with(NULL, NULL);
    assert_int_equal(trace_count(trace, "trace", "host"), 2);
    for (unsigned i = 0; i < 2; i++) {
        const struct trace_event *host = trace_event(trace, "trace", "host", i);
        uint64_t seconds = trace_number(host, "unix_ns") / 1000000000;
        assert_string_equal(trace_text(host, "host"), name);
        assert_in_range(seconds, before, (uint64_t)time(NULL));
        assert_text(host, "service", NULL);
        assert_text(host, "version", NULL);
    }
    const struct trace_event *first = trace_event(trace, "trace", "host", 0), *last = trace_event(trace, "trace", "host", 1);
    int64_t drift = (int64_t)(trace_number(last, "unix_ns") - trace_number(first, "unix_ns") - (last->ns - first->ns));
    assert_in_range(drift + 50000000, 0, 100000000); /* nobody set the clock meanwhile */
    trace_free(trace);
}

#define SERVICE_TEST(name, env_service, attributes, service, version) \
    static void \
    name(void **state) \
    { \
        (void)state; \
        struct trace *trace = traced_with(env_service, attributes); \
        assert_text(trace_event(trace, "trace", "host", 0), "service", service); \
        assert_text(trace_event(trace, "trace", "host", 0), "version", version); \
        trace_free(trace); \
    }

SERVICE_TEST(service_is_opentelemetrys, "shop", NULL, "shop", NULL)
SERVICE_TEST(variable_of_the_service_wins, "shop", "service.name=other,service.version=1.2", "shop", "1.2")
SERVICE_TEST(attributes_alone_are_enough, NULL, "a=b, service.version=2%2C5%20rc ,service.name=cart", "cart", "2,5 rc ")
SERVICE_TEST(empty_ones_are_none, "", "service.name=,service.version", NULL, NULL)
SERVICE_TEST(names_that_only_begin_so_do_not_count, NULL, "service.named=x,xservice.name=y,service.version.id=3", NULL, NULL)
SERVICE_TEST(bytes_that_are_no_text_are_escaped, "caf\xe9", "service.version=%ff%", "caf\\xE9", "\\xFF%")

static void
long_ones_are_cut(void **state)
{
    (void)state;
    char service[1000];
    memset(service, 'x', sizeof(service) - 1);
    service[sizeof(service) - 1] = '\0';
    struct trace *trace = traced_with(service, NULL);
    assert_int_equal(strlen(trace_text(trace_event(trace, "trace", "host", 0), "service")), 127);
    trace_free(trace);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        isolated_test(first_and_last_host_have_name_and_time_of_day),
        isolated_test(service_is_opentelemetrys),
        isolated_test(variable_of_the_service_wins),
        isolated_test(attributes_alone_are_enough),
        isolated_test(empty_ones_are_none),
        isolated_test(names_that_only_begin_so_do_not_count),
        isolated_test(bytes_that_are_no_text_are_escaped),
        isolated_test(long_ones_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
