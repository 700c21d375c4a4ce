# What a scenario's script may call. Every path of a cgroup is below the cgroup root.

CGROUPS=/sys/fs/cgroup
DATA=/mnt/data
BIG=$DATA/data/big A=$DATA/data/a B=$DATA/data/b

# open_port: a line there is a word to the lab, and the results are bytes after their line.
open_port() {
    local port
    for port in /sys/class/virtio-ports/*; do
        [ "$(cat "$port/name")" = lab ] && exec 3<>"/dev/${port##*/}"
    done
}

tell() { echo "$*" >&3; }

# Says a word to the host and waits until it has been heeded.
ask() { tell "$@"; read -r _ <&3; }

# skip WHY: this kernel cannot show the situation.
skip() { tell "@skip $*"; sleep 60; }

# broken WHY: the lab itself failed.
broken() { tell "@broken $*"; sleep 60; }

# need PATH: what the kernel must offer.
need() { [ -e "$1" ] || skip "no $1 in this kernel"; }

# disk NAME serve|fast|slow N|hang|lose: how the host treats this disk from here on.
disk() { ask "@disk $*"; }

# note NAME NUMBER: a number of the scenario's own, `seen.NAME` in its claims; the last of a name counts.
note() { echo "$1 $2" >> /out/notes; }

# scheduler DISK NAME: what orders its requests; skipped where the kernel has none of that name.
scheduler() {
    grep -qw "$2" "/sys/block/$1/queue/scheduler" || skip "no scheduler $2 in this kernel"
    echo "$2" > "/sys/block/$1/queue/scheduler"
}

# number DISK: its MAJOR:MINOR.
number() { cat "/sys/class/block/$1/dev"; }

# hierarchy v2|v1: the cgroups; the controllers are on for the children of the root.
hierarchy() {
    local controller
    if [ "$1" = v1 ]; then
        mount -t tmpfs -o mode=755 cgroup_root "$CGROUPS"
        for controller in blkio memory cpu; do
            mkdir "$CGROUPS/$controller"
            mount -t cgroup -o "$controller" cgroup "$CGROUPS/$controller" && continue
            # Newer kernels can leave the memory controller out of version 1.
            [ "$controller" = memory ] || skip "no $controller of version 1 in this kernel"
            rmdir "$CGROUPS/$controller"
        done
    else
        mount -t cgroup2 -o nsdelegate,memory_recursiveprot cgroup2 "$CGROUPS"
        controllers ""
    fi
}

# controllers CGROUP: on for its children, all that a container host has.
controllers() { echo "+io +memory +cpu +pids" > "$CGROUPS/$1/cgroup.subtree_control"; }

# group CGROUP...: makes each, its ancestors with their controllers on.
group() {
    local path hierarchy above word
    for path in "$@"; do
        if [ -e "$CGROUPS/blkio" ]; then
            for hierarchy in "$CGROUPS"/*; do mkdir -p "$hierarchy/$path"; done
            continue
        fi
        above=
        for word in $(echo "${path%/*}" | tr / ' '); do
            [ "$above$word" = "$path" ] && break
            above=$above$word
            [ -d "$CGROUPS/$above" ] || { mkdir "$CGROUPS/$above"; controllers "$above"; }
            above=$above/
        done
        mkdir -p "$CGROUPS/$path"
    done
}

# data [DEVICE [TYPE [OPTIONS]]]: mounts the file system that the loads use.
data() {
    case ${2:-ext4} in
        xfs) module xfs ;;
        btrfs) module raid6_pq btrfs ;;
    esac
    mkdir -p "$DATA"
    mount -t "${2:-ext4}" -o "noatime${3:+,$3}" "${1:-/dev/vda1}" "$DATA"
}

# module NAME...: loads these, where they are not built in.
module() {
    local name file
    for name in "$@"; do
        for file in /modules/*-"$name".ko; do [ -e "$file" ] && insmod "$file"; done
    done
    true
}

# within CGROUP COMMAND...: becomes the command, in that cgroup.
within() {
    local cgroup=$1
    shift
    exec sh -ec 'for procs in $0; do echo $$ > "$procs"; done; exec "$@"' "$(procs "$cgroup")" "$@"
}
procs() {
    if [ -e "$CGROUPS/blkio" ]; then echo "$CGROUPS"/*/"$1"/cgroup.procs; else echo "$CGROUPS/$1/cgroup.procs"; fi
}

# start CGROUP COMMAND...: the same beside this script, until `stop`.
LOADS=
start() {
    (within "$@") &
    LOADS="$LOADS $!"
}

# alive PID: whether it has not ended.
alive() { grep -qs '^State:.[^ZX]' "/proc/$1/status"; }

# devices_of FIO-ARGUMENTS...: a device that is not there would be a file in the guest's memory, and fast.
devices_of() {
    local word
    for word in "$@"; do
        case $word in
            --filename=/dev/*) [ -b "${word#*=}" ] || broken "${word#*=} is no block device" ;;
        esac
    done
}

# load NAME CGROUP FIO-ARGUMENTS...: fio until `stop`; `fio.NAME` in the claims.
load() {
    local name=$1 cgroup=$2
    shift 2
    devices_of "$@"
    start "$cgroup" fio "--name=$name" --time_based --runtime=300 --direct=1 --output-format=json \
        "--output=/out/fio/$name.json" "$@"
}

# before NAME CGROUP FIO-ARGUMENTS...: the same for three seconds, to its end: how it was without the cause.
before() {
    local name=$1 cgroup=$2
    shift 2
    devices_of "$@"
    (within "$cgroup" fio "--name=$name" --time_based --runtime=3 --direct=1 --output-format=json \
        "--output=/out/fio/$name.json" "$@")
}

# watch [SETTLE]: lets the load settle for so many seconds, then quell watches it. Every load must outlive that.
watch() {
    local load
    sleep "${1:-2}"
    ask @begin
    if [ -e /capture ]; then
        quell capture /out/capture --for 8s --json 2>/out/quell.err >/out/capture.json
    else
        quell doctor --for 6s --json 2>/out/quell.err >/out/doctor.json || note quell_status $?
    fi
    ask @end
    [ -z "$COUNTER" ] || kill "$COUNTER"
    COUNTER=
    for load in $LOADS; do alive "$load" || broken "a load ended early"; done
}

# limit CGROUP DISK KEY=VALUE...: its io.max there.
limit() { echo "$(number "$2") $(shift 2; echo "$@")" > "$CGROUPS/$1/io.max"; }

# iocost DISK IOPS PCT: on, with a model of so many operations a second and 60 MB/s, of which it gives so many per cent.
iocost() {
    need "$CGROUPS/io.cost.qos"
    local dev
    dev=$(number "$1")
    echo "$dev ctrl=user model=linear rbps=60000000 rseqiops=$2 rrandiops=$2 wbps=60000000 wseqiops=$2 wrandiops=$2" \
        > "$CGROUPS/io.cost.model"
    echo "$dev enable=1 ctrl=user rpct=0.00 rlat=50000 wpct=0.00 wlat=50000 min=$3.00 max=$3.00" > "$CGROUPS/io.cost.qos"
}

# clock: hundredths of a second since the boot.
clock() { sed 's/\([0-9]*\)\.\([0-9]*\) .*/\1\2/' /proc/uptime; }

# count_waits CGROUP FUNCTION NAME: how often, of all looks from here to the end of the watch, a task of it waits there:
# `seen.NAME_looks` of `seen.looks`.
COUNTER=
count_waits() {
    local looks=0 waits=0 task
    while sleep 0.2; do
        looks=$((looks + 1))
        for task in $(cat "$CGROUPS/$1/cgroup.threads"); do cat "/proc/$task/wchan"; echo; done | grep -q "$2" && waits=$((waits + 1))
        note looks $looks
        note "$3_looks" $waits
    done &
    COUNTER=$!
}

# count_state CGROUP LETTER: how many of its tasks are in this state.
count_state() {
    local task
    for task in $(cat "$CGROUPS/$1/cgroup.threads"); do cat "/proc/$task/status"; done | grep -c "^State:.$2" || true
}

# memory_stat CGROUP KEY: of its memory.stat.
memory_stat() { sed -n "s/^$2 //p" "$CGROUPS/$1/memory.stat"; }

# commits: that the first ext4 journal has made.
commits() { cat /proc/fs/jbd2/*/info | sed 's/ .*//;q'; }

# rate_begin COMMAND..., rate_end NAME: `seen.NAME`, by how much per second the number grew that the command says.
rate_begin() { rate_command="$*" rate_from=$("$@") rate_clock=$(clock); }
rate_end() { note "$1" $(( ($($rate_command) - rate_from) * 100 / ($(clock) - rate_clock) )); }

# pressure_begin io|cpu, pressure_end io|cpu: `seen.io_pressure_pct`, the share of the time between in which somebody waited.
pressure_begin() { pressure_from=$(pressure "$1") pressure_clock=$(clock); }
pressure_end() { note "$1_pressure_pct" $(( ($(pressure "$1") - pressure_from) / 100 / ($(clock) - pressure_clock) )); }
pressure() { sed -n 's/^some.*total=//p' "/proc/pressure/$1"; }

# stop: ends what `start` and `load` began; fio writes its numbers then.
stop() {
    [ -n "$LOADS" ] || return 0
    local load left
    kill -TERM $LOADS 2>/dev/null || true
    for _ in $(seq 20); do
        left=
        for load in $LOADS; do alive "$load" && left="$left $load"; done
        [ -n "$left" ] || break
        sleep 0.5
    done
    kill -KILL $LOADS 2>/dev/null || true
    LOADS=
}

results() {
    dmesg > /out/dmesg
    uname -r > /out/kernel
    tar -c -C /out . > /tmp/results
    tell "@results $(wc -c < /tmp/results)"
    cat /tmp/results >&3
    sleep 60
}
