/*
 * Words of records against the format's specification. The right sides are worked out by hand
 * from the field tables there, never with the module's own helpers.
 * https://fuchsia.dev/fuchsia-src/reference/tracing/trace-format
 */
#include "harness.h"
#include "vm_trace/schema/fxt.h"

static void
assert_word(uint64_t word, uint64_t expected)
{
    if (word != expected) fail_msg("0x%016llx, not 0x%016llx", (unsigned long long)word, (unsigned long long)expected);
}

static void
magic_number_is_that_of_the_format(void **state)
{
    (void)state;
    /* Metadata (0) of one word (1 << 4), trace info (4 << 16), magic number type (0), 0x16547846 at bit 24. */
    assert_word(FXT_MAGIC_RECORD, 0x0016547846040010);
}

static void
record_header_has_type_and_size(void **state)
{
    (void)state;
    assert_word(fxt_header(FXT_RECORD_METADATA, 1), 0x10);
    assert_word(fxt_header(FXT_RECORD_INITIALIZATION, 2), 0x21);
    assert_word(fxt_header(FXT_RECORD_STRING, 1), 0x12);
    assert_word(fxt_header(FXT_RECORD_THREAD, 3), 0x33);
    assert_word(fxt_header(FXT_RECORD_EVENT, 2), 0x24);
    assert_word(fxt_header(FXT_RECORD_KERNEL_OBJECT, 4), 0x47);
    assert_word(fxt_header(FXT_RECORD_EVENT, 4095), 0xFFF4);
}

static void
string_record_has_index_and_length(void **state)
{
    (void)state;
    assert_word(fxt_string_header(5, 5), 0x0000000500050022);      /* "hello": 2 words */
    assert_word(fxt_string_header(1, 8), 0x0000000800010022);      /* 8 bytes: one word more, not two */
    assert_word(fxt_string_header(1, 9), 0x0000000900010032);
    assert_word(fxt_string_header(32767, 1), 0x000000017FFF0022);  /* all 15 bits of the index, bit 31 stays 0 */
    assert_word(fxt_string_header(1, 32752), 0x00007FF00001FFF2);  /* the longest: 1 + 4,094 words */
}

static void
longest_string_fills_the_largest_record(void **state)
{
    (void)state;
    assert_int_equal(FXT_MAX_STRING_BYTES, 32752);
    assert_int_equal(1 + fxt_words(FXT_MAX_STRING_BYTES), 4095);
}

static void
words_are_counted_up(void **state)
{
    (void)state;
    assert_int_equal(fxt_words(0), 0);
    assert_int_equal(fxt_words(1), 1);
    assert_int_equal(fxt_words(8), 1);
    assert_int_equal(fxt_words(9), 2);
}

static void
padding_is_a_string_record_that_defines_nothing(void **state)
{
    (void)state;
    assert_word(fxt_padding_header(1), 0x12);
    assert_word(fxt_padding_header(512), 0x2002);
    assert_word(fxt_padding_header(4095), 0xFFF2);
}

static void
thread_record_has_its_index(void **state)
{
    (void)state;
    assert_word(fxt_thread_header(1), 0x0000000000010033);
    assert_word(fxt_thread_header(255), 0x0000000000FF0033);
}

/* Each field alone, then all at once. */
static void
event_header_has_each_field_at_its_bit(void **state)
{
    (void)state;
    assert_word(fxt_event_header(FXT_EVENT_INSTANT, 2, 0, 0, 0, 0), 0x0000000000000024);
    assert_word(fxt_event_header(FXT_EVENT_DURATION_BEGIN, 2, 0, 0, 0, 0), 0x0000000000020024);
    assert_word(fxt_event_header(FXT_EVENT_DURATION_END, 2, 0, 0, 0, 0), 0x0000000000030024);
    assert_word(fxt_event_header(FXT_EVENT_INSTANT, 17, 0, 0, 0, 0), 0x0000000000000114);
    assert_word(fxt_event_header(FXT_EVENT_INSTANT, 2, 15, 0, 0, 0), 0x0000000000F00024);
    assert_word(fxt_event_header(FXT_EVENT_INSTANT, 2, 0, 255, 0, 0), 0x00000000FF000024);
    assert_word(fxt_event_header(FXT_EVENT_INSTANT, 2, 0, 0, 32767, 0), 0x00007FFF00000024);
    assert_word(fxt_event_header(FXT_EVENT_INSTANT, 2, 0, 0, 0, 32767), 0x7FFF000000000024);
    assert_word(fxt_event_header(FXT_EVENT_DURATION_BEGIN, 17, 15, 0xAB, 0x1234, 0x5678), 0x56781234ABF20114);
}

static void
arguments_have_type_size_name_and_value(void **state)
{
    (void)state;
    assert_word(fxt_string_argument(0x11, 0x22), 0x0000002200110016);
    assert_word(fxt_string_argument(32767, 32767), 0x00007FFF7FFF0016);
    assert_word(fxt_uint32_argument(13, 0xFFFFFFFF), 0xFFFFFFFF000D0012);
    assert_word(fxt_uint32_argument(13, 0), 0x00000000000D0012);
    assert_word(fxt_uint64_argument(13), 0x00000000000D0024);
    assert_word(fxt_koid_argument(51), 0x0000000000330028);
}

static void
provider_info_has_id_and_length_of_name(void **state)
{
    (void)state;
    assert_word(fxt_provider_info_header(1, 13), 0x00D0000000110030);  /* "ruby vm_trace" */
    assert_word(fxt_provider_info_header(0xFFFFFFFF, 1), 0x001FFFFFFFF10020);
    assert_word(fxt_provider_info_header(1, 255), 0x0FF0000000110210); /* 33 words */
}

static void
kernel_object_has_type_name_and_arguments(void **state)
{
    (void)state;
    assert_word(fxt_kernel_object_header(2, FXT_OBJECT_PROCESS, 0x34, 0), 0x0000000034010027);
    assert_word(fxt_kernel_object_header(4, FXT_OBJECT_THREAD, 0x35, 1), 0x0000010035020047);
    assert_word(fxt_kernel_object_header(4, FXT_OBJECT_THREAD, 32767, 15), 0x00000F7FFF020047);
}

static void
text_is_padded_with_zeros(void **state)
{
    (void)state;
    uint64_t words[4] = { ~0ull, ~0ull, ~0ull, ~0ull };
    fxt_put_text(words, "hello", 5);
    assert_word(words[0], 0x0000006F6C6C6568);
    assert_word(words[1], ~0ull);

    fxt_put_text(words, "12345678", 8);
    assert_word(words[0], 0x3837363534333231);
    assert_word(words[1], ~0ull);

    fxt_put_text(words, "123456789", 9);
    assert_word(words[0], 0x3837363534333231);
    assert_word(words[1], 0x0000000000000039);
    assert_word(words[2], ~0ull);

    words[0] = ~0ull;
    fxt_put_text(words, "", 0);
    assert_word(words[0], ~0ull);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(magic_number_is_that_of_the_format),
        cmocka_unit_test(record_header_has_type_and_size),
        cmocka_unit_test(string_record_has_index_and_length),
        cmocka_unit_test(longest_string_fills_the_largest_record),
        cmocka_unit_test(words_are_counted_up),
        cmocka_unit_test(padding_is_a_string_record_that_defines_nothing),
        cmocka_unit_test(thread_record_has_its_index),
        cmocka_unit_test(event_header_has_each_field_at_its_bit),
        cmocka_unit_test(arguments_have_type_size_name_and_value),
        cmocka_unit_test(provider_info_has_id_and_length_of_name),
        cmocka_unit_test(kernel_object_has_type_name_and_arguments),
        cmocka_unit_test(text_is_padded_with_zeros),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
