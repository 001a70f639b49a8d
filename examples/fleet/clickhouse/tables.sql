-- The tables of vm-trace export --tables on each shard (NAME_local), and over all shards (NAME). load.sh runs this on
-- each. All rows of a process are on one shard, so that questions join tables without the network; a partition is a
-- day, which is replaced as a whole and dropped when it is old.

CREATE TABLE IF NOT EXISTS processes_local (
    day Date, schema Int64, process String, host_name String, service String, version String, pid Int64,
    trace String, ruby String, base String, jit String, streams String, exit_rate Int64, start_ns Int64,
    start_unix_ns Int64, end_ns Int64, end_unix_ns Int64, complete Int64, snapshot String, lost_events Int64,
    boot_unix_ns Int64, clock_jump_ns Int64, time_from String, command String, partial String
) ENGINE = MergeTree PARTITION BY day ORDER BY (process);
CREATE TABLE IF NOT EXISTS processes AS processes_local
    ENGINE = Distributed(fleet, default, processes_local, cityHash64(process));

CREATE TABLE IF NOT EXISTS threads_local (
    day Date, schema Int64, process String, tid Int64, name String, events Int64, exits Int64,
    fallbacks Int64, running_ns Int64, gc_ns Int64, waiting_ns Int64, blocked_ns Int64, runs Int64,
    longest_wait_ns Int64, compiled_ns Int64, exited_ns Int64, interpreted_ns Int64, c_function_ns Int64,
    fallback_ns Int64, compiling_ns Int64
) ENGINE = MergeTree PARTITION BY day ORDER BY (process, tid);
CREATE TABLE IF NOT EXISTS threads AS threads_local
    ENGINE = Distributed(fleet, default, threads_local, cityHash64(process));

CREATE TABLE IF NOT EXISTS sites_local (
    day Date, schema Int64, process String, kind String, reason String, family String, frame String,
    frame_id Int64, method String, insn String, jit_version Int64, iseq String, callee String, count Int64,
    recorded Int64, at_version_limit Int64, lost_ns Int64, lost_max_ns Int64, insn_index Int64
) ENGINE = MergeTree PARTITION BY day ORDER BY (process, kind, reason);
CREATE TABLE IF NOT EXISTS sites AS sites_local
    ENGINE = Distributed(fleet, default, sites_local, cityHash64(process));

CREATE TABLE IF NOT EXISTS stacks_local (
    day Date, schema Int64, process String, stack_id Int64, depth Int64, frame_id Int64
) ENGINE = MergeTree PARTITION BY day ORDER BY (process, stack_id, depth);
CREATE TABLE IF NOT EXISTS stacks AS stacks_local
    ENGINE = Distributed(fleet, default, stacks_local, cityHash64(process));

CREATE TABLE IF NOT EXISTS frames_local (
    day Date, schema Int64, process String, frame_id Int64, frame String, method String, path String,
    line Int64
) ENGINE = MergeTree PARTITION BY day ORDER BY (process, frame_id);
CREATE TABLE IF NOT EXISTS frames AS frames_local
    ENGINE = Distributed(fleet, default, frames_local, cityHash64(process));

CREATE TABLE IF NOT EXISTS events_local (
    day Date, schema Int64, process String, ts_ns Int64, unix_ns Int64, tid Int64, kind String,
    category String, name String, id Int64, thread String, frame_id Int64, stack_id Int64, insn String,
    jit_version Int64, weight Int64, outcome String, lost_ns Int64, arguments String
) ENGINE = MergeTree PARTITION BY day ORDER BY (process, tid, ts_ns);
CREATE TABLE IF NOT EXISTS events AS events_local
    ENGINE = Distributed(fleet, default, events_local, cityHash64(process));

CREATE TABLE IF NOT EXISTS spans_local (
    day Date, schema Int64, process String, start_ns Int64, start_unix_ns Int64, dur_ns Int64, open Int64,
    tid Int64, category String, name String, outermost Int64, iseq String, jit_version Int64,
    code_bytes Int64, reason String, arguments String
) ENGINE = MergeTree PARTITION BY day ORDER BY (process, tid, start_ns);
CREATE TABLE IF NOT EXISTS spans AS spans_local
    ENGINE = Distributed(fleet, default, spans_local, cityHash64(process));

CREATE TABLE IF NOT EXISTS states_local (
    day Date, schema Int64, process String, start_ns Int64, start_unix_ns Int64, dur_ns Int64, tid Int64,
    state String, gc_ns Int64, name String, waker_tid Int64
) ENGINE = MergeTree PARTITION BY day ORDER BY (process, tid, start_ns);
CREATE TABLE IF NOT EXISTS states AS states_local
    ENGINE = Distributed(fleet, default, states_local, cityHash64(process));

CREATE TABLE IF NOT EXISTS counters_local (
    day Date, schema Int64, process String, ts_ns Int64, unix_ns Int64, category String, name String,
    series String, id Int64, value Float64
) ENGINE = MergeTree PARTITION BY day ORDER BY (process, name, ts_ns);
CREATE TABLE IF NOT EXISTS counters AS counters_local
    ENGINE = Distributed(fleet, default, counters_local, cityHash64(process));
