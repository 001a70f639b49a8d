/* sample_gather.c - gathers samples of time for a report. */
#include "topics/markers/endpoint_costs.h"
#include "topics/report_data.h"

static bool
sample_wanted(void *context, const struct time_sample *sample)
{
    struct report *report = context;
    uint32_t native = report_moment(report, sample->recording, sample->pid, sample->tid, sample->ts_ns);
    report->recorded[TOPIC_samples] = true;
    return !report->exits_only && report_thread_wanted(report, native) && report_time_wanted(report, sample->ts_ns);
}

static void
sample_added(void *context, const struct time_sample *sample)
{
    struct report *report = context;
    uint32_t native = report_thread_of(report, sample->recording, sample->pid, sample->tid);
    struct sample_thread *thread = row_table_get(&report->samples.threads, &native);
    if (thread != NULL) sample_times_add(&thread->times, sample->state, sample->ns, 1);
    const uint32_t key[SAMPLE_PLACE_KEYS] = {report->file_count - 1, report->samples.profile.nodes[sample->node].text,
                                             sample->state};
    if (!time_sample_waits(sample->state))
        endpoint_cost_add(report, native, sample->ts_ns, ENDPOINT_SAMPLED, sample->ns, key[1]);
    struct sample_place *place = row_table_get(&report->samples.places, key);
    if (place != NULL) place->ns += sample->ns;
    report_counts_in(report, sample->ts_ns, sample->ts_ns);
}

static void
init(struct report *report)
{
    struct report_samples *samples = &report->samples;
    profile_init(&samples->profile, report->reader, PROFILE_SAMPLES, true);
    if (report->filter.app_only) samples->profile.app_only = &report->owners;
    time_samples_init(&samples->all, report->reader, &samples->profile);
    samples->all.context = report;
    samples->all.wanted = sample_wanted;
    samples->all.added = sample_added;
    row_table_init(&samples->threads, sizeof(struct sample_thread), 1, REPORT_THREADS_MAX);
    row_table_init(&samples->places, sizeof(struct sample_place), SAMPLE_PLACE_KEYS, SAMPLE_ROWS_MAX);
}

static void
free_all(struct report *report)
{
    struct report_samples *samples = &report->samples;
    time_samples_free(&samples->all);
    profile_free(&samples->profile);
    row_table_free(&samples->threads);
    row_table_free(&samples->places);
}

static void
about_trace(struct report *report, const struct topic_event *of)
{
    if (event_settings_p(of->event)) time_samples_settings(&report->samples.all, of->event);
}

static void
blob(struct report *report, const struct fxt_blob *blob)
{
    time_samples_blob(&report->samples.all, blob);
}

TOPIC_CALL(file_end, time_samples_file_end(&report->samples.all))

const struct topic topic_samples = {
    .init = init,
    .free = free_all,
    .file_end = file_end,
    .about_trace = about_trace,
    .blob = blob,
    .tables = samples_tables,
};
