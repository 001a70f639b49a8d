/* Protocol buffers: what is written is read again, the bytes are those of the format's own examples, and
 * damage ends reading. */
#define _GNU_SOURCE 1
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/proto.h"

/* The examples of https://protobuf.dev/programming-guides/encoding/ . */
static void
bytes_are_those_of_the_format(void **state)
{
    (void)state;
    static const uint8_t number[] = {0x08, 0x96, 0x01}, text[] = {0x12, 0x07, 't', 'e', 's', 't', 'i', 'n', 'g'},
                         inside[] = {0x1a, 0x03, 0x08, 0x96, 0x01};
    struct proto_message message = {0}, outer = {0};
    proto_add_uint(&message, 1, 150);
    assert_int_equal(message.len, sizeof number);
    assert_memory_equal(message.bytes, number, sizeof number);
    proto_add_message(&outer, 3, &message);
    assert_int_equal(message.len, 0);
    assert_int_equal(outer.len, sizeof inside);
    assert_memory_equal(outer.bytes, inside, sizeof inside);
    outer.len = 0;
    proto_add_bytes(&outer, 2, "testing", 7);
    assert_int_equal(outer.len, sizeof text);
    assert_memory_equal(outer.bytes, text, sizeof text);
    free(message.bytes);
    free(outer.bytes);
}

static void
all_numbers_are_read_again(void **state)
{
    (void)state;
    static const uint64_t numbers[] = {0, 1, 127, 128, 16383, 16384, UINT32_MAX, INT64_MAX, UINT64_C(1) << 63,
                                       UINT64_MAX};
    enum { COUNT = sizeof numbers / sizeof *numbers, LAST_FIELD = (1 << 29) - 1 };
    struct proto_message message = {0};
    for (int i = 0; i < COUNT; i++) proto_add_uint(&message, i % 2 ? LAST_FIELD : 1, numbers[i]);
    struct proto from = proto_of(message.bytes, message.len);
    struct proto_field field;
    for (int i = 0; i < COUNT; i++) {
        assert_true(proto_next(&from, &field));
        assert_int_equal(field.number, i % 2 ? LAST_FIELD : 1);
        assert_int_equal(field.type, PROTO_VARINT);
        assert_true(field.value == numbers[i]);
    }
    assert_false(proto_next(&from, &field));
    assert_false(from.damaged);
    free(message.bytes);
}

static void
large_messages_are_read_again(void **state)
{
    (void)state;
    enum { BYTES = 100000 };
    char *text = calloc(BYTES, 1);
    struct proto_message inner = {0}, message = {0};
    proto_add_bytes(&inner, 1, text, BYTES);
    proto_add_bytes(&inner, 2, "", 0);
    proto_add_message(&message, 7, &inner);
    struct proto from = proto_of(message.bytes, message.len);
    struct proto_field field, inside;
    assert_true(proto_next(&from, &field));
    assert_true(proto_next(&field.message, &inside));
    assert_int_equal(inside.message.end - inside.message.at, BYTES);
    assert_true(proto_next(&field.message, &inside));
    assert_int_equal(inside.message.end - inside.message.at, 0);
    assert_false(proto_next(&field.message, &inside) || field.message.damaged);
    free(text);
    free(inner.bytes);
    free(message.bytes);
}

static void
damage_ends_reading(void **state)
{
    (void)state;
    static const struct {
        uint8_t bytes[12];
        size_t len;
    } damaged[] = {
        {{0x08}, 1},             /* no value */
        {{0x08, 0x80}, 2},       /* half of one */
        {{0x12, 0x05, 'a'}, 3},  /* a text that is longer than the message */
        {{0x0b}, 1},             /* a group */
        {{0x02, 0x01, 'a'}, 3},  /* field 0 */
        {{0x09, 1, 2, 3}, 4},    /* half of eight bytes */
        {{0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00}, 12}, /* eleven bytes */
    };
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        struct proto from = proto_of(damaged[i].bytes, damaged[i].len);
        struct proto_field field;
        assert_false(proto_next(&from, &field));
        assert_true(from.damaged);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_those_of_the_format),
        cmocka_unit_test(all_numbers_are_read_again),
        cmocka_unit_test(large_messages_are_read_again),
        cmocka_unit_test(damage_ends_reading),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
