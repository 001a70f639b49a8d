-- Loads the tables of vm-trace export --tables (CSV) into DuckDB: {tables} is their folder. Loading again replaces
-- them. The partitions become the columns day and host. Columns are only ever added at the end (doc/guide/tables.md),
-- so null_padding also loads files of an older schema.

CREATE OR REPLACE TABLE processes AS SELECT * FROM read_csv('{tables}/processes/*/*/*.csv.gz',
    header = true, auto_detect = false, quote = '"', escape = '"', null_padding = true, hive_partitioning = true,
    columns = {
        schema: 'BIGINT', process: 'VARCHAR', host_name: 'VARCHAR', service: 'VARCHAR',
        version: 'VARCHAR', pid: 'BIGINT', trace: 'VARCHAR', ruby: 'VARCHAR', base: 'VARCHAR',
        jit: 'VARCHAR', streams: 'VARCHAR', exit_rate: 'BIGINT', start_ns: 'BIGINT',
        start_unix_ns: 'BIGINT', end_ns: 'BIGINT', end_unix_ns: 'BIGINT', complete: 'BIGINT',
        snapshot: 'VARCHAR', lost_events: 'BIGINT', boot_unix_ns: 'BIGINT', clock_jump_ns: 'BIGINT',
        time_from: 'VARCHAR', command: 'VARCHAR', partial: 'VARCHAR'
    });

CREATE OR REPLACE TABLE threads AS SELECT * FROM read_csv('{tables}/threads/*/*/*.csv.gz',
    header = true, auto_detect = false, quote = '"', escape = '"', null_padding = true, hive_partitioning = true,
    columns = {
        schema: 'BIGINT', process: 'VARCHAR', tid: 'BIGINT', name: 'VARCHAR', events: 'BIGINT',
        exits: 'BIGINT', fallbacks: 'BIGINT', running_ns: 'BIGINT', gc_ns: 'BIGINT',
        waiting_ns: 'BIGINT', blocked_ns: 'BIGINT', runs: 'BIGINT', longest_wait_ns: 'BIGINT',
        compiled_ns: 'BIGINT', exited_ns: 'BIGINT', interpreted_ns: 'BIGINT', c_function_ns: 'BIGINT',
        fallback_ns: 'BIGINT', compiling_ns: 'BIGINT'
    });

CREATE OR REPLACE TABLE sites AS SELECT * FROM read_csv('{tables}/sites/*/*/*.csv.gz',
    header = true, auto_detect = false, quote = '"', escape = '"', null_padding = true, hive_partitioning = true,
    columns = {
        schema: 'BIGINT', process: 'VARCHAR', kind: 'VARCHAR', reason: 'VARCHAR', family: 'VARCHAR',
        frame: 'VARCHAR', frame_id: 'BIGINT', method: 'VARCHAR', insn: 'VARCHAR', jit_version: 'BIGINT',
        iseq: 'VARCHAR', callee: 'VARCHAR', count: 'BIGINT', recorded: 'BIGINT',
        at_version_limit: 'BIGINT', lost_ns: 'BIGINT', lost_max_ns: 'BIGINT', insn_index: 'BIGINT'
    });

CREATE OR REPLACE TABLE stacks AS SELECT * FROM read_csv('{tables}/stacks/*/*/*.csv.gz',
    header = true, auto_detect = false, quote = '"', escape = '"', null_padding = true, hive_partitioning = true,
    columns = {
        schema: 'BIGINT', process: 'VARCHAR', stack_id: 'BIGINT', depth: 'BIGINT', frame_id: 'BIGINT'
    });

CREATE OR REPLACE TABLE frames AS SELECT * FROM read_csv('{tables}/frames/*/*/*.csv.gz',
    header = true, auto_detect = false, quote = '"', escape = '"', null_padding = true, hive_partitioning = true,
    columns = {
        schema: 'BIGINT', process: 'VARCHAR', frame_id: 'BIGINT', frame: 'VARCHAR', method: 'VARCHAR',
        path: 'VARCHAR', line: 'BIGINT'
    });

CREATE OR REPLACE TABLE events AS SELECT * FROM read_csv('{tables}/events/*/*/*.csv.gz',
    header = true, auto_detect = false, quote = '"', escape = '"', null_padding = true, hive_partitioning = true,
    columns = {
        schema: 'BIGINT', process: 'VARCHAR', ts_ns: 'BIGINT', unix_ns: 'BIGINT', tid: 'BIGINT',
        kind: 'VARCHAR', category: 'VARCHAR', name: 'VARCHAR', id: 'BIGINT', thread: 'VARCHAR',
        frame_id: 'BIGINT', stack_id: 'BIGINT', insn: 'VARCHAR', jit_version: 'BIGINT',
        weight: 'BIGINT', outcome: 'VARCHAR', lost_ns: 'BIGINT', arguments: 'VARCHAR'
    });

CREATE OR REPLACE TABLE spans AS SELECT * FROM read_csv('{tables}/spans/*/*/*.csv.gz',
    header = true, auto_detect = false, quote = '"', escape = '"', null_padding = true, hive_partitioning = true,
    columns = {
        schema: 'BIGINT', process: 'VARCHAR', start_ns: 'BIGINT', start_unix_ns: 'BIGINT',
        dur_ns: 'BIGINT', open: 'BIGINT', tid: 'BIGINT', category: 'VARCHAR', name: 'VARCHAR',
        outermost: 'BIGINT', iseq: 'VARCHAR', jit_version: 'BIGINT', code_bytes: 'BIGINT',
        reason: 'VARCHAR', arguments: 'VARCHAR'
    });

CREATE OR REPLACE TABLE states AS SELECT * FROM read_csv('{tables}/states/*/*/*.csv.gz',
    header = true, auto_detect = false, quote = '"', escape = '"', null_padding = true, hive_partitioning = true,
    columns = {
        schema: 'BIGINT', process: 'VARCHAR', start_ns: 'BIGINT', start_unix_ns: 'BIGINT',
        dur_ns: 'BIGINT', tid: 'BIGINT', state: 'VARCHAR', gc_ns: 'BIGINT', name: 'VARCHAR',
        waker_tid: 'BIGINT'
    });

CREATE OR REPLACE TABLE counters AS SELECT * FROM read_csv('{tables}/counters/*/*/*.csv.gz',
    header = true, auto_detect = false, quote = '"', escape = '"', null_padding = true, hive_partitioning = true,
    columns = {
        schema: 'BIGINT', process: 'VARCHAR', ts_ns: 'BIGINT', unix_ns: 'BIGINT', category: 'VARCHAR',
        name: 'VARCHAR', series: 'VARCHAR', id: 'BIGINT', value: 'DOUBLE'
    });
