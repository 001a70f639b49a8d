#!/bin/sh
# Starts two shards of ClickHouse on this machine, and waits until both answer.
#   start.sh FOLDER [PORT]    data and logs in FOLDER; ports PORT and PORT + 1 (default 19001) on 127.0.0.1
# FOLDER/1.pid and FOLDER/2.pid have their process ids: kill $(cat FOLDER/*.pid) stops them.
set -eu
folder=$(mkdir -p "$1" && cd "$1" && pwd)
export FLEET_SHARD_1="${2:-19001}"
export FLEET_SHARD_2=$((FLEET_SHARD_1 + 1))
cd "$(dirname "$0")"
for shard in 1 2; do
    mkdir -p "$folder/$shard"
    FLEET_TCP_PORT=$((FLEET_SHARD_1 + shard - 1)) FLEET_PATH="$folder/$shard/" FLEET_TMP="$folder/$shard/tmp/" \
        nohup clickhouse-server --config-file=server.xml > "$folder/$shard.log" 2>&1 &
    echo $! > "$folder/$shard.pid"
done
for port in "$FLEET_SHARD_1" "$FLEET_SHARD_2"; do
    tries=300
    until clickhouse-client --port "$port" --query 'SELECT 1' > /dev/null 2>&1; do
        tries=$((tries - 1))
        if [ "$tries" = 0 ]; then
            echo "start.sh: no ClickHouse at port $port; see $folder/*.log" >&2
            exit 1
        fi
        sleep 0.1
    done
done
