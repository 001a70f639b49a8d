-- Ten questions about a fleet, for DuckDB. ask.rb replaces {service}, {old} and {new}: a service, and its versions
-- before and after a deploy. ../clickhouse/questions.sql has the same questions with the same answers.

-- exits_by_reason: For which reasons does compiled code give up, over the whole fleet, and what does that cost?
SELECT reason, sum(count) AS exits, sum(lost_ns) AS lost_ns
FROM sites WHERE kind <> 'fallback'
GROUP BY reason ORDER BY exits DESC, reason;

-- sites_since_deploy: Which places exit more, in a second of a process, since the last deploy?
WITH deploy AS (SELECT * FROM processes WHERE service = '{service}' AND version IN ('{old}', '{new}')),
traced AS (
    SELECT sum(end_ns - start_ns) FILTER (version = '{old}') / 1e9 AS old_s,
           sum(end_ns - start_ns) FILTER (version = '{new}') / 1e9 AS new_s
    FROM deploy)
SELECT reason, method, insn,
       coalesce(sum(count) FILTER (version = '{old}'), 0) AS old_exits,
       coalesce(sum(count) FILTER (version = '{new}'), 0) AS new_exits,
       old_exits / any_value(old_s) AS old_per_second, new_exits / any_value(new_s) AS new_per_second
FROM sites JOIN deploy USING (process), traced
WHERE kind <> 'fallback'
GROUP BY reason, method, insn
ORDER BY new_per_second - old_per_second DESC, reason, method, insn;

-- lost_time_by_site: Which places keep the fleet's threads in the interpreter for longest?
SELECT reason, frame, insn, sum(count) AS exits, sum(lost_ns) AS lost_ns, max(lost_max_ns) AS longest_ns
FROM sites WHERE kind <> 'fallback'
GROUP BY reason, frame, insn
ORDER BY lost_ns DESC, exits DESC, reason, frame, insn LIMIT 20;

-- busiest_hosts: Which hosts have the most exits in a second of a process?
SELECT host_name, sum(exits) AS exits, sum(end_ns - start_ns) AS traced_ns,
       sum(exits) * 1e9 / sum(end_ns - start_ns) AS exits_per_second
FROM processes
LEFT JOIN (SELECT process, sum(count) AS exits FROM sites WHERE kind <> 'fallback' GROUP BY process) USING (process)
GROUP BY host_name ORDER BY exits_per_second DESC, host_name;

-- gvl_waiting: How much of their lives do threads of each service wait for the GVL?
SELECT service, sum(waiting_ns) AS total_waiting_ns,
       total_waiting_ns / sum(running_ns + gc_ns + waiting_ns + blocked_ns) AS share, max(longest_wait_ns) AS longest_ns
FROM threads JOIN processes USING (process)
GROUP BY service ORDER BY total_waiting_ns DESC, service;

-- gc_pauses: How long does the garbage collector stop a process of each service: in one case of a hundred, and at most?
SELECT service, count(*) AS pauses, sum(dur_ns) AS total_ns,
       quantile_disc(dur_ns, 0.99) AS p99_ns, max(dur_ns) AS longest_ns
FROM spans JOIN processes USING (process)
WHERE category = 'gc' AND spans.name IN ('GC minor', 'GC major') AND open = 0
GROUP BY service ORDER BY p99_ns DESC, service;

-- slowest_spans: Where did the ten slowest spans of the program exit? (Recorded exits, with their weight.)
WITH slowest AS (
    SELECT process, tid, name AS span, start_ns, dur_ns FROM spans
    WHERE category = 'marker' ORDER BY dur_ns DESC, process, start_ns LIMIT 10),
places AS (SELECT DISTINCT frame_id, frame FROM frames)
SELECT process, span, start_ns, dur_ns, name AS reason, frame, sum(weight) AS exits
FROM slowest JOIN events USING (process, tid) JOIN places USING (frame_id)
WHERE category IN ('side_exit', 'recompile_exit') AND ts_ns BETWEEN start_ns AND start_ns + dur_ns
GROUP BY process, span, start_ns, dur_ns, reason, frame
ORDER BY dur_ns DESC, process, exits DESC, reason, frame;

-- compilations_by_version: What does each version compile, and how much code is it?
SELECT service, version, count(*) AS compilations, sum(dur_ns) AS total_ns, sum(code_bytes) AS total_code_bytes
FROM spans JOIN processes USING (process)
WHERE category = 'compile' AND iseq <> '' AND open = 0
GROUP BY service, version ORDER BY service, version;

-- recorder_losses: Are the answers complete? Events that recorders lost, and processes without an end.
SELECT service, host_name, count(*) AS processes, sum(lost_events) AS lost, sum(1 - complete) AS incomplete
FROM processes
GROUP BY service, host_name ORDER BY lost DESC, incomplete DESC, service, host_name;

-- new_exits: Which exits does the new version have that the old one never had? The spread between its processes
-- (standard deviation) is the noise: an exit of one process in a hundred may be that process's request.
WITH counts AS (
    SELECT version, process, reason, method, insn, sum(count) AS exits, sum(lost_ns) AS lost_ns
    FROM sites JOIN processes USING (process)
    WHERE kind <> 'fallback' AND service = '{service}' AND version IN ('{old}', '{new}')
    GROUP BY ALL HAVING exits > 0),
all_new AS (SELECT count(*) AS n FROM processes WHERE service = '{service}' AND version = '{new}')
SELECT reason, method, insn, count(*) AS processes, sum(exits) AS exits, sum(lost_ns) AS lost_ns,
       any_value(n) AS of_processes, sum(exits) / of_processes AS per_process,
       sqrt(greatest(sum(exits * exits) - sum(exits) * per_process, 0) / greatest(of_processes - 1, 1)) AS spread
FROM counts, all_new
WHERE version = '{new}'
  AND (reason, method, insn) NOT IN (SELECT (reason, method, insn) FROM counts WHERE version = '{old}')
GROUP BY reason, method, insn ORDER BY lost_ns DESC, exits DESC, reason, method, insn;
