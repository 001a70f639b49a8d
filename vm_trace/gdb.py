"""Post mortem: what the tracer has in memory, from a stopped process or a core file.

    gdb -x vm_trace/gdb.py --pid PID          (or: ruby CORE; `make gdb` does this)
    (gdb) vm-trace status | sites [N] | writers | events [N] | calls [N] | save FILE

Reads only: nothing is called in the process, so it works at any instruction and in a core. Chunks are shared mappings of the trace
file, which core files leave out by default (coredump_filter, bit 3); then they are read from the file, while it is there.
Only the layouts of the module's own structs are used, by way of the debug information.
"""
import os
import struct

import gdb

WORD = 8
MAGIC = 0x0016547846040010
# Not in the debug information, for they are macros: chunk_file.h, sites.c.
CHUNK_WORDS = (1 << 20) // WORD
BLOCK_SITES = 256
MOST_ARGUMENTS = 15  # of an event
NO_UNIT = 1  # of the sites that stand for all those beyond the limit
METADATA, INITIALIZATION, STRING, THREAD, EVENT = range(5)
FILE_ERRORS = {-1: "the limit of its size is reached", -2: "another program cut it short", -3: "it was removed",
               -4: "another program wrote into it", -5: "the file system refused a page of it", -6: "its disk has too little space"}  # enum in chunk_file.h
NOT_IN_CORE = ("the flight recorder's memory is not in the core. Before a core is written, bit 1 of /proc/PID/coredump_filter (which is "
               "set unless someone clears it; echo 0x33) puts it there")
EVENT_KINDS = {0: "instant", 1: "counter", 2: "begin", 3: "end", 4: "complete", 5: "async begin", 7: "async end",
               8: "flow begin", 9: "flow step", 10: "flow end"}
KINDS = {"RB_VM_TRACE_SIDE_EXIT": "side_exit", "RB_VM_TRACE_RECOMPILE_EXIT": "recompile_exit", "RB_VM_TRACE_FALLBACK": "fallback"}
INSTANT, DURATION_BEGIN, DURATION_END, COMPLETE = 0, 2, 3, 4
ASYNC_BEGIN, ASYNC_END, FLOW_BEGIN, FLOW_STEP, FLOW_END = 5, 7, 8, 9, 10


def failed(text):
    return gdb.GdbError("vm-trace: " + text)


def bits(word, first, count):
    return word >> first & ((1 << count) - 1)


def text_of(pointer, length=None):
    """A C string, or `length` bytes of one. "" for NULL."""
    if int(pointer) == 0:
        return ""
    data = pointer.string(errors="replace") if length is None else memory(int(pointer), length).decode(errors="replace")
    return printable(data)


def string_of(pointer):
    """A struct vm_trace_string, or NULL."""
    if int(pointer) == 0:
        return ""
    return text_of(pointer["text"].address.cast(gdb.lookup_type("char").pointer()), int(pointer["bytes"]))


def printable(text):
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def memory(address, length):
    return bytes(gdb.selected_inferior().read_memory(address, length))


def static_of(file, name):
    """A static variable of one of the module's files."""
    for found in gdb.lookup_static_symbols(name):
        if found.symtab.filename.endswith(os.path.join("vm_trace", file)):
            return found.value()
    raise failed("%s of %s has no debug information in this executable" % (name, file))


def trace():
    try:
        return gdb.parse_and_eval("rb_vm_trace_capture")
    except gdb.error as error:
        raise failed("no tracer with debug information here (%s); is it the patched ruby that ran?" % error)


def session():
    return gdb.parse_and_eval("rb_vm_trace_session")


def streams():
    """The table of streams. By the pointer, for the array's size is known in one file only."""
    table, found = trace()["streams"], []
    while int(table[len(found)]):
        found.append(table[len(found)].dereference())
    return found


def stream(name):
    return next(found for found in streams() if text_of(found["name"]) == name)


def exits_of(ractor):
    return kept_for(stream("exits"), ractor, "vm_trace_exit_state")


# Where living ractors count, by counter: the struct that one keeps for the stream (capture/stream.h), and its member.
# Hits of sites are counted apart.
LIVE_COUNTERS = {
    "allocation_samples": ("vm_trace_allocations_state", "samples"),
    "allocation_bytes": ("vm_trace_allocations_state", "bytes"),
    "calls": ("vm_trace_ractor_calls", "written"), "calls_left_out": ("vm_trace_ractor_calls", "left_out"),
    "gc_collections": ("vm_trace_gc_state", "collections"), "gc_pauses": ("vm_trace_gc_state", "pauses"),
    "markers": ("vm_trace_marker_state", "written"),
    "suspensions": ("vm_trace_threads_state", "suspensions"),
    "suspensions_without_callers": ("vm_trace_threads_state", "left_out"),
    "syscalls": ("vm_trace_kernel_counts", "written"), "syscalls_left_out": ("vm_trace_kernel_counts", "left_out"),
    "sched_slices": ("vm_trace_kernel_counts", "written"), "sched_left_out": ("vm_trace_kernel_counts", "left_out"),
}


def kept_for(stream, ractor, struct_name):
    """What a ractor state keeps for a stream."""
    place = int(ractor.address) + int(stream["offset"])
    return gdb.Value(place).cast(gdb.lookup_type("struct " + struct_name).pointer()).dereference()


def epoch():
    """Another number after each reset."""
    return int(gdb.parse_and_eval("rb_vm_trace_changes")) & 0xffffffff


def counters_of(state):
    """
    What streams counted since the last reset, by name, as rb_vm_trace_ractor_totals does it. Hits of sites:
    of sites that were freed. Without counters of 0 of streams that are not recorded, as in a summary.
    """
    found, ractors = {}, counting_ractors(state)
    for each in streams():
        at = 0
        while int(each["counters"]) and int(each["counters"][at]):
            name, index = text_of(each["counters"][at]), int(each["first_counter"]) + at
            count = int(state["dead"]["counters"][index]) - int(state["dead_base"]["counters"][index])
            if name in LIVE_COUNTERS and int(each["rate"]):
                struct_name, member = LIVE_COUNTERS[name]
                count += sum(int(kept_for(each, ractor, struct_name)[member]) for ractor in ractors)
            if name == "calls_replaced" and int(each["rate"]):
                replaced = static_of("streams/calls/call_stream.c", "replaced")
                count += int(replaced["count"]) - int(replaced["base"])
            if count or int(each["rate"]) or not int(each["without_jit"]):
                found[name] = count
            at += 1
    return found


def counting_ractors(state):
    """Those living ones that have noticed the last reset: the others have counted nothing since."""
    return [ractor for ractor in ractors_of(state) if int(ractor["epoch"]) == epoch()]


def lost_of(state):
    """Events that could not be recorded since the last reset."""
    lost = int(state["dead"]["lost"]) - int(state["dead_base"]["lost"])
    lost += sum(int(ractor["lost"]) for ractor in counting_ractors(state))
    return lost + (int(state["overflow"]["lost"]) if int(state["overflow"]) else 0)


def ractors_of(state):
    """What each living ractor records with, the oldest first."""
    found, ractor = [], state["ractors"]
    while int(ractor) != 0:
        found.insert(0, ractor.dereference())
        ractor = ractor["next"]
    return found


def sites():
    """Live sites with their hits, summed over all ractors; the most frequent first."""
    state, table = trace(), static_of("streams/code/sites.c", "sites")
    counters = [exits_of(ractor)["hits"] for ractor in ractors_of(state)]
    if int(state["overflow"]) != 0:
        counters.append(exits_of(state["overflow"].dereference())["hits"])
    found = []
    for index in range(1, int(table["count"])):
        block = table["blocks"][index // BLOCK_SITES]
        if int(block) == 0:
            continue
        site = block[index % BLOCK_SITES]
        if int(site["unit"]) == 0:
            continue
        if int(site["index"]) != index:
            raise failed("gdb.py does not fit the vm_trace/streams/code/sites.c that was built")
        total = sum(int(hits[index]) for hits in counters)
        if int(site["unit"]) != NO_UNIT or total > 0:
            found.append((total, site))
    return sorted(found, key=lambda pair: -pair[0])


class OpenCalls:
    """
    Calls of an execution context that had not returned, the outermost first: (name, begin_ns, whether it
    began before the trace). As rb_vm_trace_open_calls_report writes them.
    """

    def __init__(self, state, context):
        self.tid, self.calls = int(context["id"]["tid"]), []
        self.last_ns = int(context["last_ns"])  # of what began or ended last
        now = epoch()
        reset = int(context["epoch"]) != now  # not noticed yet
        since_ns = int(state["since_ns"][now & 1])
        outer, late = context["open"].dereference(), 0
        for at in range(1, int(context["top"] - context["open"]) + 1):
            call = context["open"][at]
            begin_ns = int(call["begin_ns"])
            # The innermost call may be written just now.
            if int(call["frame"]) >= int(outer["frame"]) or begin_ns < int(outer["begin_ns"]):
                break
            outer = call
            if reset and begin_ns < since_ns:
                late = at
            if int(call["name"]) and call.address <= context["deepest"]:
                self.calls.append((string_of(call["name"]), begin_ns, bool(call["began_before"]), at))
        self.calls = [(name, since_ns - 1 - late + at, True) if at <= late else (name, begin_ns, before)
                      for name, begin_ns, before, at in self.calls]


def open_calls(state):
    """Of each execution context of the trace that has some."""
    context, found = static_of("streams/calls/open_calls.c", "contexts"), []
    while int(context):
        if int(context["trace"]) == 1 << 32 | int(state["first_epoch"]):
            found.append(OpenCalls(state, context))
        context = context["next"]
    return [each for each in found if each.calls]


class Chunk:
    """
    The words of a writer's chunk, from memory or else from the file, with what they say. Those before it of its
    run (writer.h) define what it uses: they are part of it, from the file.
    """

    def __init__(self, state, writer):
        self.offset = int(writer["chunk"]["offset"])
        self.first = int(writer["chunk"]["first"])
        self.used = int(writer["pos"])
        self.source = "memory"
        address = int(writer["chunk"]["words"])
        try:
            data = memory(address, CHUNK_WORDS * WORD)
        except gdb.MemoryError:
            data = b""
        if not any(data[:4096]):
            if int(state["file"]["memory"]):
                raise failed(NOT_IN_CORE)
            data, self.source = self.from_file(text_of(session()["path"])), "the file"
        run = int(writer["run"])
        for _ in range(run):
            self.offset -= CHUNK_WORDS * WORD
            data = self.from_file(text_of(session()["path"])) + data
        if run:
            self.first = 0 if self.offset else 1
            self.used += run * CHUNK_WORDS
        self.words = list(struct.unpack("<%dQ" % (len(data) // WORD), data))

    def from_file(self, path):
        try:
            with open(path, "rb") as file:
                file.seek(self.offset)
                data = file.read(CHUNK_WORDS * WORD)
        except OSError as error:
            raise failed("the chunk at offset %d is not in the core, and %s: %s. Before a core is written, bit 3 of "
                         "/proc/PID/coredump_filter (echo 0x3b) puts it there" % (self.offset, path, error.strerror))
        if not any(data[:4096]):
            raise failed("the chunk at offset %d is not in the core, and %s does not reach there" % (self.offset, path))
        return data

    def records(self):
        """(position, type, words) of each record that was published, padding left out."""
        at = self.first
        while at < min(self.used, len(self.words)):
            header = self.words[at]
            size = bits(header, 4, 12)
            if size == 0:
                raise failed("a record of size 0 at offset %d" % (self.offset + at * WORD))
            if bits(header, 0, 4) != STRING or bits(header, 16, 16) != 0:
                yield at, bits(header, 0, 4), self.words[at:at + size]
            at += size

    def events(self):
        """(position, kind, ns, tid, category, name, arguments) of each event."""
        strings, threads = {0: ""}, {}
        for at, kind, words in self.records():
            if kind == STRING:
                strings[bits(words[0], 16, 16)] = printable(bytes_of(words[1:])[:bits(words[0], 32, 15)].decode(errors="replace"))
            elif kind == THREAD:
                threads[bits(words[0], 16, 8)] = words[2]
            elif kind == EVENT:
                category, name = (strings.get(bits(words[0], first, 16), "?") for first in (32, 48))
                arguments = list(self.arguments(words[2:], bits(words[0], 20, 4), strings))
                yield at, bits(words[0], 16, 4), words[1], threads.get(bits(words[0], 24, 8), 0), category, name, arguments

    @staticmethod
    def arguments(words, count, strings):
        at = 0
        for _ in range(count):
            header = words[at]
            kind, size, name = bits(header, 0, 4), bits(header, 4, 12), strings.get(bits(header, 16, 16), "?")
            if kind == 6:
                yield name, strings.get(bits(header, 32, 16), "?")
            else:
                yield name, str(bits(header, 32, 32) if size == 1 else words[at + 1])
            at += size


def bytes_of(words):
    return struct.pack("<%dQ" % len(words), *words)


def writers(state):
    """(what it is, its ractor state or None, its writer): ractors, what they share, what those left that have ended"""
    for number, ractor in enumerate(ractors_of(state), 1):
        yield "recorder %d" % number, ractor, ractor["writer"]
    shared = state["shared"]["writer"]
    if int(shared["chunk"]["words"]) != 0:
        yield "shared", None, shared
    rest = state["shared"]["orphans"]
    while int(rest) != 0:
        yield "left", None, rest["writer"]
        rest = rest["next"]


def chunks(state):
    """(what writes into it, the chunk or None), each chunk once: a ractor may just have borrowed the shared one, and then knows better"""
    found = {}
    for name, _, writer in writers(state):
        if int(writer["chunk"]["words"]) == 0:
            yield name, None
        elif int(writer["chunk"]["words"]) not in found:
            found[int(writer["chunk"]["words"])] = True
            yield name, Chunk(state, writer)


# --- a trace that gdb writes: a new settings event, and the chunks as they are -----------------------------------------------


def inline(text):
    """An inline string reference, and its words."""
    data = text.encode()[:0x7fff]
    padded = data + bytes(-len(data) % WORD)
    return 0x8000 | len(data), list(struct.unpack("<%dQ" % (len(padded) // WORD), padded))


def header(kind, words, fields=0):
    return kind | words << 4 | fields


class Wide(int):
    """A number that is written with 64 bits."""


def argument(name, value):
    reference, key = inline(name)
    if isinstance(value, str):
        value_reference, words = inline(value)
        return [6 | (1 + len(key) + len(words)) << 4 | reference << 16 | value_reference << 32, *key, *words]
    if isinstance(value, Wide):
        return [4 | (2 + len(key)) << 4 | reference << 16, *key, value]
    return [2 | (1 + len(key)) << 4 | reference << 16 | value << 32, *key]


def provider_and_clock():
    """What a chunk begins with: what was defined before it counts no longer."""
    name_length, name = inline("ruby vm_trace")
    return [header(METADATA, 1 + len(name), 1 << 16 | 1 << 20 | (name_length & 0x7fff) << 52), *name, header(INITIALIZATION, 2), 10 ** 9]


def event(kind, pid, tid, ns, category, name, arguments, last=()):
    """An event that refers to nothing else in the file. `last`: words that its kind has at the end."""
    (category, category_words), (name, name_words) = inline(category), inline(name)
    body = [ns, pid, tid, *category_words, *name_words]
    for key, value in arguments:
        body += argument(key, value)
    body += last
    return [header(EVENT, 1 + len(body), kind << 16 | len(arguments) << 20 | category << 32 | name << 48), *body]


def trace_event(pid, ns, name, arguments):
    return event(INSTANT, pid, pid, ns, "trace", name, arguments)


def open_call_events(state, ns):
    """
    (words, number, latest time) of the events of open calls, as the tracer writes them at the end of a trace.
    `ns`: the latest time that events have.
    """
    pid, contexts, words = int(state["pid"]), open_calls(state), []
    ns = max([ns, *(each.last_ns for each in contexts)])
    for each in contexts:
        for name, begin_ns, before in reversed(each.calls):
            arguments = [("began", "before the trace")] if before else []
            arguments.append(("ended", "after the trace"))
            words += event(COMPLETE, pid, each.tid, begin_ns, "call", name, arguments, [ns])
    return words, sum(len(each.calls) for each in contexts), ns


def preamble(state):
    """A provider, its clock, and the settings: chunks hold all else, but only the first of a file holds these."""
    pid, recorded = int(state["pid"]), [each for each in streams() if int(each["rate"])]
    arguments = [("ruby", text_of(gdb.parse_and_eval("rb_dynamic_description"))), ("jit", text_of(state["jit"])),
                 ("flags", " ".join(text_of(each["name"]) for each in recorded)), ("command", "saved by gdb"), ("pid", pid)]
    for name, rate in (("exits", "exit_rate"), ("fallbacks", "fallback_rate")):
        if int(stream(name)["rate"]):
            arguments.append((rate, int(stream(name)["rate"])))
    if int(stream("exits")["only"]):
        arguments.append(("counter", text_of(stream("exits")["only"])))
    return [MAGIC, *provider_and_clock(), *trace_event(pid, int(state["begin_ns"]), "settings", arguments)]


def count_events(words):
    """Of a whole trace: events, exits, the latest time of one."""
    strings, events, exits, last = {}, 0, 0, 0
    at, end = 1, len(words)
    while at < end:
        word = words[at]
        kind, size = word & 15, word >> 4 & 0xfff
        if size == 0:
            break
        if kind == EVENT:
            events += 1
            exits += strings.get(word >> 32 & 0xffff, False)
            last = max(last, words[at + size - 1 if word >> 16 & 15 == COMPLETE else at + 1])
        elif kind == STRING:
            strings[word >> 16 & 0xffff] = bytes_of(words[at + 1:at + size])[:word >> 32 & 0x7fff] in (b"side_exit", b"recompile_exit")
        elif kind == METADATA:
            strings.clear()
        at += size
    return events, exits, last


def last_words(state, words):
    """The sites with their hits, what was lost, and the summary, of a flight recorder's memory: the process could not write them any more."""
    pid = int(state["pid"])
    events, exits, ns = count_events(words)
    totals = counters_of(state)
    words, calls, ns = open_call_events(state, ns)
    words = provider_and_clock() + words
    if calls:
        totals["calls"] += calls
    events += calls
    for hits, site in sites():
        kind = KINDS[str(site["kind"])]
        if hits == 0 or int(stream("fallbacks" if kind == "fallback" else "exits")["rate"]) == 0:
            continue
        arguments = [("reason", string_of(site["reason"])), ("kind", kind), ("insn", string_of(site["insn"])), ("version", int(site["version"])),
                     ("location", string_of(site["location"]))]
        if int(site["iseq"]):
            arguments.append(("iseq", string_of(site["iseq"])))
        words += trace_event(pid, ns, "site", [*arguments, ("hits", Wide(hits))])
        totals["fallbacks" if kind == "fallback" else "exits"] += hits
        totals["sites"] += 1
        events += 1
    dropped, lost = int(state["file"]["dropped"]["events"]), lost_of(state)
    for number, why in ((lost, "events could not be recorded"), (dropped, "older events gave way at the limit of the memory")):
        if number:
            words += trace_event(pid, ns, "loss", [("lost", Wide(number)), ("reason", why)])
            events += 1
    summary = [("snapshot", "memory"), ("sampled", Wide(exits)), ("events", Wide(events)), ("lost", Wide(lost + dropped))]
    counts = [(name, Wide(count)) for name, count in totals.items()]
    more = counts[MOST_ARGUMENTS - len(summary):]  # what the summary has no room for
    if more:
        words += trace_event(pid, ns, "counts", more)
        summary[2] = ("events", Wide(events + 1))
    summary += counts[:MOST_ARGUMENTS - len(summary)]
    return words + trace_event(pid, ns + 1, "summary", summary)


def begun_in(chunk):
    """Numbers of what begins in the chunk: (whether it is a flow, number), the last word of an event."""
    return {(bits(words[0], 16, 4) == FLOW_BEGIN, words[-1]) for _, kind, words in chunk.records()
            if kind == EVENT and bits(words[0], 16, 4) in (ASYNC_BEGIN, FLOW_BEGIN)}


def without_loose_ends(chunk, begun):
    """The chunk's words; the end of what began in an earlier chunk, and is not among `begun`, becomes padding."""
    words = list(chunk.words[chunk.first:])
    depths = {}
    for at, kind, _, tid, *_ in chunk.events():
        if kind in (ASYNC_END, FLOW_STEP, FLOW_END):
            size = bits(chunk.words[at], 4, 12)
            if (kind != ASYNC_END, chunk.words[at + size - 1]) not in begun:
                words[at - chunk.first] = header(STRING, size)
        elif kind == DURATION_BEGIN:
            depths[tid] = depths.get(tid, 0) + 1
        elif kind == DURATION_END and depths.get(tid, 0) == 0:
            words[at - chunk.first] = header(STRING, bits(chunk.words[at], 4, 12))
        elif kind == DURATION_END:
            depths[tid] -= 1
    return words


# --- commands -----------------------------------------------------------------------------------------------------------------


class VMTrace(gdb.Command):
    """What the tracer of JIT exits has in memory: vm-trace status | sites | writers | events | calls | save."""

    def __init__(self):
        super().__init__("vm-trace", gdb.COMMAND_DATA, gdb.COMPLETE_NONE, True)


class Subcommand(gdb.Command):
    def __init__(self):
        super().__init__("vm-trace " + self.word, gdb.COMMAND_DATA, gdb.COMPLETE_FILENAME if self.word == "save" else gdb.COMPLETE_NONE)

    @staticmethod
    def number(argument, default):
        if not argument:
            return default
        if not argument.isdigit() or int(argument) == 0:
            raise failed("%s: a whole number from 1 is needed" % argument)
        return int(argument)


class Status(Subcommand):
    """vm-trace status: whether it records, what, and where to."""

    word = "status"

    def invoke(self, argument, from_tty):
        state = trace()
        print("state     %s" % {0: "off", 1: "pending: a forked child that has recorded nothing yet", 2: "on"}[int(state["state"])])
        if int(state["state"]) == 0:
            return
        file = state["file"]
        print("pid       %d" % int(state["pid"]))
        if int(file["memory"]):
            print("memory    %d of %d bytes at 0x%x, /proc/%d/fd/%d" % (
                int(file["size"]), int(file["memory_bytes"]), int(file["memory"]), int(state["pid"]), int(file["fd"])))
        else:
            print("file      %s, %d bytes" % (text_of(session()["path"]), int(file["size"])))
        error = int(file["error"])
        if error:
            print("stopped   %s" % (FILE_ERRORS.get(error) or os.strerror(error)))
        print("records   %s" % (", ".join(self.recorded()) or "nothing"))

    @staticmethod
    def recorded():
        for each in streams():
            rate, name = int(each["rate"]), text_of(each["name"])
            if rate and name in ("exits", "fallbacks"):
                yield "every %s" % name[:-1] if rate == 1 else "one %s in %d" % (name[:-1], rate)
            elif rate:
                yield name


class Sites(Subcommand):
    """vm-trace sites [N]: the N most frequent places that exit (20), with their exact hits."""

    word = "sites"

    def invoke(self, argument, from_tty):
        most = self.number(argument, 20)
        found = sites()
        print("%d live sites, %d hits" % (len(found), sum(hits for hits, _ in found)))
        for hits, site in found[:most]:
            texts = [string_of(site[name]) for name in ("reason", "insn", "location")]
            kind = KINDS[str(site["kind"])]
            print("%12d  %s  %s  version %d  %s  %s" % (hits, texts[0], texts[1], int(site["version"]), texts[2], kind))


class Writers(Subcommand):
    """vm-trace writers: what each ractor records with, and its chunk of the file."""

    word = "writers"

    def invoke(self, argument, from_tty):
        for name, ractor, writer in writers(trace()):
            if name == "shared":
                print("shared, by recorders that have no chunk of their own")
            elif name == "left":
                print("left by a ractor that has ended, to the next one that needs a chunk")
            else:
                print("%s  at 0x%x  %d events, %d exits recorded, %d lost, next sample in %d" % (
                    name, int(ractor.address), int(writer["events"]), int(exits_of(ractor)["sampled"]), int(ractor["lost"]),
                    int(exits_of(ractor)["countdown"])))
            if int(writer["chunk"]["words"]) == 0:
                print("    no chunk")
                continue
            number = "" if name == "left" else "%d of it, " % int(writer["serial"])
            print("    chunk %sat 0x%x, file offset %d, %d of %d bytes used, %d strings, %d threads" % (
                number, int(writer["chunk"]["words"]), int(writer["chunk"]["offset"]), int(writer["pos"]) * WORD,
                CHUNK_WORDS * WORD, int(writer["next_string"]) - 1, int(writer["thread_count"])))


class Events(Subcommand):
    """vm-trace events [N]: the last N events of each ractor (10), as far as its chunk at hand holds them."""

    word = "events"

    def invoke(self, argument, from_tty):
        most = self.number(argument, 10)
        for name, chunk in chunks(trace()):
            if chunk is None:
                print("%s: no chunk" % name)
                continue
            events = list(chunk.events())
            shown = min(most, len(events))
            print("%s: the last %d of %d events in its chunk (from %s)" % (name, shown, len(events), chunk.source))
            for _, kind, ns, tid, category, name, arguments in events[-most:]:
                suffix = "" if kind == 0 else " (%s)" % EVENT_KINDS.get(kind, "?")
                print("  %d.%09d  thread %d  %s %s%s" % (ns // 10 ** 9, ns % 10 ** 9, tid, category, name, suffix))
                for key, value in arguments:
                    print("      %-8s %s" % (key, value))


class Calls(Subcommand):
    """vm-trace calls [N]: the N innermost calls of each thread (20) that had not returned, and when they began."""

    word = "calls"

    def invoke(self, argument, from_tty):
        most, found = self.number(argument, 20), open_calls(trace())
        if not int(stream("calls")["rate"]):
            print("calls are not recorded")
        elif not found:
            print("no thread is in a recorded call")
        for each in found:
            print("thread %d: %d calls have not returned" % (each.tid, len(each.calls)))
            for name, begin_ns, before in each.calls[:-most - 1:-1]:
                print("  %d.%09d%s  %s" % (begin_ns // 10 ** 9, begin_ns % 10 ** 9, " or before" if before else "", name))


class Save(Subcommand):
    """vm-trace save FILE: write the chunks at hand out as a trace: all of a flight recorder's memory. Else those before them are in the trace file only."""

    word = "save"

    def invoke(self, argument, from_tty):
        names = gdb.string_to_argv(argument)
        if len(names) != 1:
            raise failed("save takes one argument, the file to make")
        state = trace()
        if int(state["state"]) == 0:
            raise failed("nothing is traced here")
        if int(state["file"]["memory"]):
            return self.save_memory(state, names[0])
        found = sorted((chunk for _, chunk in chunks(state) if chunk), key=lambda chunk: chunk.offset)
        first = [MAGIC] if found and found[0].offset == 0 else preamble(state)
        begun = set().union(*(begun_in(chunk) for chunk in found))
        parts = [without_loose_ends(chunk, begun) for chunk in found]
        calls, number, _ = open_call_events(state, max((count_events([MAGIC, *words])[2] for words in parts), default=0))
        if number:
            parts.append(provider_and_clock() + calls)
        self.write(names[0], [bytes_of(words) for words in (first, *parts)])
        print("%s: %d chunks, %s" % (names[0], len(found), ", ".join("offset %d from %s" % (c.offset, c.source) for c in found) or "none"))

    @staticmethod
    def write(name, parts):
        try:
            # Not over a file that is there: it may be the trace.
            with open(name, "xb") as file:
                for part in parts:
                    file.write(part)
        except OSError as error:
            raise failed("%s: %s" % (name, error.strerror))

    # It is a whole trace at any instant, its settings included; only what is known at the end is missing.
    def save_memory(self, state, name):
        file = state["file"]
        try:
            data = memory(int(file["memory"]), int(file["size"]))
        except gdb.MemoryError:
            raise failed(NOT_IN_CORE)
        if struct.unpack("<Q", data[:WORD])[0] != MAGIC:
            raise failed(NOT_IN_CORE)
        end = bytes_of(last_words(state, struct.unpack("<%dQ" % (len(data) // WORD), data)))
        self.write(name, [data, end])
        print("%s: %d bytes, all of the flight recorder's memory, with the sites and a summary" % (name, len(data) + len(end)))


VMTrace()
for command in (Status, Sites, Writers, Events, Calls, Save):
    command()
