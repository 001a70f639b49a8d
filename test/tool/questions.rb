# The questions of test/conformance/README.md, in Perfetto's SQL.
QUESTIONS = {
  "slices" => "select s.ts, s.dur, s.depth, s.category, s.name, t.tid, p.pid from slice s left join thread_track tt " \
              "on s.track_id=tt.id left join thread t using(utid) left join process p using(upid) order by s.ts, s.depth, s.id",
  "args" => "select s.ts, s.name, a.key, a.value_type, a.display_value from slice s join args a using(arg_set_id) " \
            "order by s.ts, s.id, a.key",
  "threads" => "select p.pid, p.name as process, t.tid, t.name as thread from thread t left join process p using(upid) " \
               "where t.tid != 0 order by p.pid, t.tid",
  "counters" => "select c.ts, c.value, t.name from counter c join track t on c.track_id=t.id order by c.ts, c.id",
  "flows" => "select a.ts as from_ts, a.name as from_name, b.ts as to_ts, b.name as to_name from flow f " \
             "join slice a on a.id=f.slice_out join slice b on b.id=f.slice_in",
  "sched" => "select s.ts, s.dur, s.cpu, t.tid, s.end_state from sched s join thread t using(utid) order by s.ts, s.cpu",
  "states" => "select ts.ts, ts.dur, ts.state, t.tid, w.tid as waker_tid from thread_state ts join thread t using(utid) " \
              "left join thread w on w.utid=ts.waker_utid order by ts.ts, t.tid, ts.id",
  "samples" => "select s.ts, s.source, t.tid, a.name as async_context, c.depth, f.name as frame, f.type " \
               "from stack_sample s left join stack_sample_task_context k on k.id=s.task_context_id " \
               "left join thread t using(utid) left join stack_sample_async_context a on a.id=k.async_context_id " \
               "left join stack_profile_callsite c on c.id=s.callsite_id " \
               "left join stack_profile_frame f on f.id=c.frame_id order by s.id",
  "weights" => "select s.ts, ct.name, ct.unit, c.value from stack_sample_counter c " \
               "join stack_sample s on s.id=c.stack_sample_id " \
               "join stack_sample_counter_track ct on ct.id=c.track_id order by s.id, ct.name",
  "frames" => "select f.name, m.name as mapping, f.rel_pc, f.type, y.source_file, y.line_number " \
              "from stack_profile_frame f join stack_profile_mapping m on m.id=f.mapping " \
              "left join stack_profile_symbol y using(symbol_set_id) order by f.id",
  "callsites" => "select id, depth, parent_id, frame_id from stack_profile_callsite order by id",
  "sessions" => "select id, source, timebase_unit from stack_sample_session order by id",
  "losses" => "select name, value from stats where value > 0 and severity in ('error', 'data_loss') order by name",
  "faults" => "select name, value from stats where value > 0 and name like 'fuchsia%'",
}.freeze
