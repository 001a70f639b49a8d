#!/bin/sh
# Loads the tables of `vm-trace export --tables --table-format=ndjson` into ClickHouse, day by day. A day that is there
# is replaced, so loading again never duplicates rows. Rows name their columns: files of an older schema load, too.
#   load.sh FOLDER [PORT...]    one port for each shard (default 19001 19002); the first one gets the rows
set -eu
folder=$1
shift
[ $# -gt 0 ] || set -- 19001 19002
here=$(dirname "$0")
for port; do clickhouse-client --port "$port" --multiquery < "$here/tables.sql"; done
for path in "$folder"/*/day=*; do
    day=${path##*/day=}
    table=${path%/day=*}
    table=${table##*/}
    for port; do clickhouse-client --port "$port" --query "ALTER TABLE ${table}_local DROP PARTITION '$day'"; done
    find "$path" -name '*.ndjson.gz' -print0 | xargs -0 cat | gzip -dc | sed "s/^{/{\"day\":\"$day\",/" |
        clickhouse-client --port "$1" --query "INSERT INTO $table FORMAT JSONEachRow"
done
