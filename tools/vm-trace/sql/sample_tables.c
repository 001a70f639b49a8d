/* sample_tables.c - the tables of stack samples, with Perfetto's names. */
#ifdef HAVE_SQLITE3
#include "sql/samples.h"
#include "sql/table.h"

static uint32_t sample_rows(const struct model *model) { return model->samples->rows.count; }

static void
sample_column(sqlite3_context *result, const struct model *model, uint32_t row, int column)
{
    const struct sample_row *sample = &model->samples->rows.list[row];
    switch (column) {
      case 0: sqlite3_result_int64(result, row); break;
      case 1: sqlite3_result_int64(result, sample->ts); break;
      case 2: result_string(result, model, sample->source); break;
      case 3: result_number(result, sample->task); break;
      case 5: result_number(result, sample->callsite); break;
      case 6: result_number(result, sample->session); break;
    }
}

static uint32_t session_rows(const struct model *model) { return model->samples->sessions.count; }

static void
session_column(sqlite3_context *result, const struct model *model, uint32_t row, int column)
{
    const struct sample_session *session = row_table_at(&model->samples->sessions, row);
    switch (column) {
      case 0: sqlite3_result_int64(result, row); break;
      case 1: result_string(result, model, session->source); break;
      case 2: result_string(result, model, session->unit); break;
    }
}

static uint32_t task_rows(const struct model *model) { return model->samples->tasks.count; }

static void
task_column(sqlite3_context *result, const struct model *model, uint32_t row, int column)
{
    const struct sample_task *task = row_table_at(&model->samples->tasks, row);
    switch (column) {
      case 0: sqlite3_result_int64(result, row); break;
      case 1: result_number(result, task->upid); break;
      case 2: result_number(result, task->utid); break;
      case 3: result_number(result, task->context); break;
    }
}

static uint32_t context_rows(const struct model *model) { return model->samples->contexts.count; }

static void
context_column(sqlite3_context *result, const struct model *model, uint32_t row, int column)
{
    const struct sample_context *context = &model->samples->contexts.list[row];
    switch (column) {
      case 0: sqlite3_result_int64(result, row); break;
      case 1: result_string(result, model, context->name); break;
      case 2: result_string(result, model, context->kind); break;
      case 3: result_number(result, context->parent); break;
    }
}

/* CPUs, which no tracer of Ruby writes. */
static uint32_t no_rows(const struct model *model) { return (void)model, 0; }

static void
no_column(sqlite3_context *result, const struct model *model, uint32_t row, int column)
{
    (void)result;
    (void)model;
    (void)row;
    (void)column;
}

static uint32_t track_rows(const struct model *model) { return model->samples->tracks.count; }

static void
track_column(sqlite3_context *result, const struct model *model, uint32_t row, int column)
{
    const struct sample_counter_track *track = row_table_at(&model->samples->tracks, row);
    switch (column) {
      case 0: sqlite3_result_int64(result, track->track); break;
      case 1: result_string(result, model, track->name); break;
      case 2: result_text(result, "stack_sample_session_counter"); break;
      case 5: sqlite3_result_int(result, 0); break;
      case 6: result_string(result, model, track->unit); break;
      case 8: sqlite3_result_int64(result, track->session); break;
      case 10: sqlite3_result_int(result, track->primary); break;
    }
}

static uint32_t weight_rows(const struct model *model) { return model->samples->counters.count; }

static void
weight_column(sqlite3_context *result, const struct model *model, uint32_t row, int column)
{
    const struct sample_counter *counter = &model->samples->counters.list[row];
    switch (column) {
      case 0: sqlite3_result_int64(result, counter->counter); break;
      case 1: sqlite3_result_int64(result, counter->sample); break;
      case 2: sqlite3_result_int64(result, model->counters.list[counter->counter].track); break;
      case 3: sqlite3_result_double(result, model->counters.list[counter->counter].value); break;
    }
}

static uint32_t callsite_rows(const struct model *model) { return model->samples->callsites.count; }

static void
callsite_column(sqlite3_context *result, const struct model *model, uint32_t row, int column)
{
    const struct sample_callsite *callsite = row_table_at(&model->samples->callsites, row);
    switch (column) {
      case 0: sqlite3_result_int64(result, row); break;
      case 1: sqlite3_result_int64(result, callsite->depth); break;
      case 2: result_number(result, callsite->parent); break;
      case 3: sqlite3_result_int64(result, callsite->frame); break;
    }
}

static uint32_t frame_rows(const struct model *model) { return model->samples->frames.count; }

/* Each frame has one symbol, of the same number. */
static void
frame_column(sqlite3_context *result, const struct model *model, uint32_t row, int column)
{
    const struct sample_frame *frame = row_table_at(&model->samples->frames, row);
    switch (column) {
      case 0:
      case 4: sqlite3_result_int64(result, row); break;
      case 1: if (pool_string(model->pool, frame->name).len > 0) result_string(result, model, frame->name); break;
      case 2: sqlite3_result_int64(result, frame->mapping); break;
      case 3: sqlite3_result_int64(result, (int64_t)((uint64_t)frame->pc_high << 32 | frame->pc_low)); break;
      case 6: result_string(result, model, frame->kind); break;
    }
}

static void
symbol_column(sqlite3_context *result, const struct model *model, uint32_t row, int column)
{
    const struct sample_frame *frame = row_table_at(&model->samples->frames, row);
    switch (column) {
      case 0:
      case 1: sqlite3_result_int64(result, row); break;
      case 2: result_string(result, model, frame->name); break;
      case 3: result_string(result, model, frame->source_path); break;
      case 4: result_number(result, frame->source_line); break;
    }
}

static uint32_t mapping_rows(const struct model *model) { return model->samples->mappings.count; }

static void
mapping_column(sqlite3_context *result, const struct model *model, uint32_t row, int column)
{
    const struct sample_mapping *mapping = row_table_at(&model->samples->mappings, row);
    switch (column) {
      case 0: sqlite3_result_int64(result, row); break;
      case 1: result_text(result, ""); break;
      case 5: sqlite3_result_int(result, mapping->generation == MODEL_NONE ? 0 : -1); break;
      case 7: result_string(result, model, mapping->name); break;
      default: sqlite3_result_int(result, 0); break;
    }
}

const struct table sample_tables[] = {
    {"stack_sample", "id, ts, source, task_context_id, execution_context_id, callsite_id, session_id", 0, -1,
     sample_rows, NULL, NULL, sample_column},
    {"all_sessions", "id, source, timebase_unit, cmdline", 0, -1, session_rows, NULL, NULL, session_column},
    {"stack_sample_task_context", "id, upid, utid, async_context_id", 0, -1, task_rows, NULL, NULL, task_column},
    {"stack_sample_async_context", "id, name, kind, parent_id", 0, -1, context_rows, NULL, NULL, context_column},
    {"stack_sample_execution_context", "id, ucpu, cpu_mode", 0, -1, no_rows, NULL, NULL, no_column},
    {"stack_sample_counter_track",
     "id, name, type, parent_id, source_arg_set_id, machine_id, unit, description, session_id, cpu, is_timebase", -1,
     -1, track_rows, NULL, NULL, track_column},
    {"stack_sample_counter", "id, stack_sample_id, track_id, value", -1, -1, weight_rows, NULL, NULL, weight_column},
    {"stack_profile_callsite", "id, depth, parent_id, frame_id", 0, -1, callsite_rows, NULL, NULL, callsite_column},
    {"stack_profile_frame", "id, name, mapping, rel_pc, symbol_set_id, deobfuscated_name, type", 0, -1, frame_rows,
     NULL, NULL, frame_column},
    {"stack_profile_symbol", "id, symbol_set_id, name, source_file, line_number, inlined", 1, -1, frame_rows, NULL,
     NULL, symbol_column},
    {"stack_profile_mapping", "id, build_id, exact_offset, start_offset, start, \"end\", load_bias, name", 0, -1,
     mapping_rows, NULL, NULL, mapping_column},
    {0},
};
#endif
