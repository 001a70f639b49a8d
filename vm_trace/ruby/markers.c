/*
 * RubyVM::Trace.span, .span_begin, .span_end, .instant, .counter and .markers?. streams/markers/markers.c writes them.
 */
#include "ruby/ruby.h"

#include "vm_trace/ruby/markers.h"
#include "vm_trace/streams/markers/markers.h"

/* The bytes of a name: a String or a Symbol. */
static void
read_name(VALUE name, const char **text_out, size_t *bytes_out)
{
    VALUE text = SYMBOL_P(name) ? rb_sym2str(name) : name;
    if (!RB_TYPE_P(text, T_STRING))
        rb_raise(rb_eTypeError, "the name of a marker is a String or a Symbol, not %" PRIsVALUE, rb_obj_class(name));
    *text_out = RSTRING_PTR(text);
    *bytes_out = (size_t)RSTRING_LEN(text);
}

struct arguments {
    struct vm_trace_marker_argument list[VM_TRACE_MARKER_ARGUMENTS];
    unsigned count, left_out;
    VALUE texts[VM_TRACE_MARKER_ARGUMENTS]; /* made for values that are no texts: kept alive here */
};

static void
set_text(struct vm_trace_marker_argument *argument, VALUE text)
{
    argument->type = FXT_ARG_STRING;
    argument->text = RSTRING_PTR(text);
    argument->text_bytes = (size_t)RSTRING_LEN(text);
}

static void
set_double(struct vm_trace_marker_argument *argument, double value)
{
    argument->type = FXT_ARG_DOUBLE;
    memcpy(&argument->bits, &value, sizeof(value));
}

static bool
fits_int64_p(VALUE bignum)
{
    int unused_bits;
    size_t bytes = rb_absint_size(bignum, &unused_bits);
    return bytes <= 8 && bytes * 8 - (size_t)unused_bits <= 63;
}

/*
 * Runs no Ruby code of the program's: what is neither a text nor a number nor true, false or nil is
 * told by its class.
 */
static void
set_value(struct vm_trace_marker_argument *argument, VALUE value, VALUE *text_out)
{
    if (RB_FIXNUM_P(value)) {
        argument->type = FXT_ARG_INT64;
        argument->bits = (uint64_t)FIX2LONG(value);
    }
    else if (RB_TYPE_P(value, T_BIGNUM) && fits_int64_p(value)) {
        argument->type = FXT_ARG_INT64;
        argument->bits = (uint64_t)rb_big2ll(value);
    }
    else if (SYMBOL_P(value)) {
        set_text(argument, rb_sym2str(value));
    }
    else if (RB_TYPE_P(value, T_STRING)) {
        set_text(argument, value);
    }
    else if (RB_FLOAT_TYPE_P(value)) {
        set_double(argument, RFLOAT_VALUE(value));
    }
    else if (NIL_P(value)) {
        argument->type = FXT_ARG_NULL;
        argument->bits = 0;
    }
    else if (value == Qtrue || value == Qfalse) {
        argument->type = FXT_ARG_BOOL;
        argument->bits = value == Qtrue;
    }
    else {
        set_text(argument,
                 *text_out = RB_TYPE_P(value, T_BIGNUM) ? rb_big2str(value, 10) : rb_class_name(CLASS_OF(value)));
    }
}

static int
add_argument(VALUE key, VALUE value, VALUE data)
{
    struct arguments *arguments = (struct arguments *)data;
    if (arguments->count == VM_TRACE_MARKER_ARGUMENTS) {
        arguments->left_out++;
        return ST_CONTINUE;
    }
    struct vm_trace_marker_argument *argument = &arguments->list[arguments->count];
    read_name(key, &argument->key, &argument->key_bytes);
    set_value(argument, value, &arguments->texts[arguments->count]);
    arguments->count++;
    return ST_CONTINUE;
}

/* `argv`: the name, then keywords or nothing. */
static rb_vm_trace_span
write_marker(enum fxt_event_type type, int argc, const VALUE *argv)
{
    struct arguments arguments;
    struct vm_trace_marker marker = { .type = type };
    read_name(argv[0], &marker.name, &marker.name_bytes);
    if (argc > 1) {
        arguments.count = arguments.left_out = 0;
        for (int i = 0; i < VM_TRACE_MARKER_ARGUMENTS; i++) arguments.texts[i] = Qnil;
        rb_hash_foreach(argv[1], add_argument, (VALUE)&arguments);
        marker.arguments = arguments.list;
        marker.argument_count = arguments.count;
        marker.left_out = arguments.left_out;
    }
    rb_vm_trace_span span = rb_vm_trace_marker_write(&marker);
    if (argc > 1) {
        for (int i = 0; i < VM_TRACE_MARKER_ARGUMENTS; i++) RB_GC_GUARD(arguments.texts[i]);
    }
    return span;
}

static void
check_arguments(int argc)
{
    int keywords = rb_keyword_given_p();
    rb_check_arity(argc - keywords, 1, 1);
}

/*
 *  call-seq:
 *    RubyVM::Trace.instant(name, **arguments) -> nil
 *
 *  Marks this moment in the trace, on the current thread, if markers are recorded. Arguments may be Strings, Symbols, Integers,
 *  Floats, true, false and nil; of other objects the class is recorded.
 */
static VALUE
trace_instant(int argc, VALUE *argv, VALUE self)
{
    (void)self;
    check_arguments(argc);
    if (RB_VM_TRACE_MARKERS_ON) write_marker(FXT_EVENT_INSTANT, argc, argv);
    return Qnil;
}

struct span {
    VALUE name;
    rb_vm_trace_span span;
};

/* `argv`: the name, then keywords or nothing. */
static void
write_end(rb_vm_trace_span span, int argc, const VALUE *argv)
{
    if (rb_vm_trace_marker_same_trace_p(span)) write_marker(FXT_EVENT_DURATION_END, argc, argv);
}

static VALUE
end_span(VALUE data)
{
    const struct span *span = (const struct span *)data;
    write_end(span->span, 1, &span->name);
    return Qnil;
}

/*
 *  call-seq:
 *    RubyVM::Trace.span(name, **arguments) { ... } -> object
 *
 *  Records how long the block runs, also when it is left by an exception, throw or break. Returns what the block returns.
 */
static VALUE
trace_span(int argc, VALUE *argv, VALUE self)
{
    (void)self;
    rb_need_block();
    check_arguments(argc);
    if (!RB_VM_TRACE_MARKERS_ON) return rb_yield_values(0);
    struct span span = { RB_TYPE_P(argv[0], T_STRING) ? rb_str_new_frozen(argv[0]) : argv[0],
                         write_marker(FXT_EVENT_DURATION_BEGIN, argc, argv) };
    if (!span.span) return rb_yield_values(0);
    return rb_ensure(rb_yield, Qundef, end_span, (VALUE)&span);
}

/*
 *  call-seq:
 *    RubyVM::Trace.span_begin(name, **arguments) -> Integer or nil
 *
 *  Begins a span where no block can be: RubyVM::Trace.span_end ends it, on the same fiber, by its name and the number
 *  that this method returns. nil if nothing is recorded.
 */
static VALUE
trace_span_begin(int argc, VALUE *argv, VALUE self)
{
    (void)self;
    check_arguments(argc);
    rb_vm_trace_span span = RB_VM_TRACE_MARKERS_ON ? write_marker(FXT_EVENT_DURATION_BEGIN, argc, argv) : 0;
    return span ? ULL2NUM(span) : Qnil;
}

/*
 *  call-seq:
 *    RubyVM::Trace.span_end(name, span, **arguments) -> nil
 *
 *  Ends the span of this name that RubyVM::Trace.span_begin began, if the trace is still the same, and adds what is
 *  known only now to its arguments. Does nothing if the number is nil.
 */
static VALUE
trace_span_end(int argc, VALUE *argv, VALUE self)
{
    (void)self;
    rb_check_arity(argc - rb_keyword_given_p(), 2, 2);
    if (NIL_P(argv[1])) return Qnil;
    VALUE rest[2] = { argv[0], argc > 2 ? argv[2] : Qnil };
    write_end(NUM2ULL(argv[1]), argc - 1, rest);
    return Qnil;
}

/*
 *  call-seq:
 *    RubyVM::Trace.markers? -> true or false
 *
 *  Whether markers are recorded, for those that would have to make the arguments of one.
 */
static VALUE
trace_markers_p(VALUE self)
{
    (void)self;
    return RB_VM_TRACE_MARKERS_ON ? Qtrue : Qfalse;
}

/*
 *  call-seq:
 *    RubyVM::Trace.counter(name, value) -> nil
 *
 *  From now on the quantity `name` is the Integer or Float `value`: a counter track of the process.
 */
static VALUE
trace_counter(VALUE self, VALUE name, VALUE value)
{
    (void)self;
    if (!RB_VM_TRACE_MARKERS_ON) return Qnil;
    struct vm_trace_marker_argument argument = { .key = "value", .key_bytes = 5 };
    if (RB_FIXNUM_P(value)) {
        argument.type = FXT_ARG_INT64;
        argument.bits = (uint64_t)FIX2LONG(value);
    }
    else if (RB_FLOAT_TYPE_P(value) || RB_TYPE_P(value, T_BIGNUM)) {
        set_double(&argument, NUM2DBL(value));
    }
    else {
        rb_raise(rb_eTypeError, "the value of a counter is an Integer or a Float, not %"PRIsVALUE, rb_obj_class(value));
    }
    struct vm_trace_marker marker = { .type = FXT_EVENT_COUNTER, .arguments = &argument, .argument_count = 1 };
    read_name(name, &marker.name, &marker.name_bytes);
    rb_vm_trace_marker_write(&marker);
    return Qnil;
}

void
rb_vm_trace_define_markers(VALUE mTrace)
{
    rb_define_singleton_method(mTrace, "instant", trace_instant, -1);
    rb_define_singleton_method(mTrace, "span", trace_span, -1);
    rb_define_singleton_method(mTrace, "span_begin", trace_span_begin, -1);
    rb_define_singleton_method(mTrace, "span_end", trace_span_end, -1);
    rb_define_singleton_method(mTrace, "counter", trace_counter, 2);
    rb_define_singleton_method(mTrace, "markers?", trace_markers_p, 0);
}
