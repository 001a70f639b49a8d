/* junit.c - the results of limits as JUnit XML, which CI systems show: see diff_tables.h. */
#include <inttypes.h>
#include <string.h>

#include "diff/diff_tables.h"

/* Control characters cannot be in XML, and bytes that are no UTF-8 neither: messages are escaped already. */
static void
print_text(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
          case '&': fputs("&amp;", out); break;
          case '<': fputs("&lt;", out); break;
          case '>': fputs("&gt;", out); break;
          case '"': fputs("&quot;", out); break;
          case '\n': fputs("&#10;", out); break;
          default: putc(*text, out); break;
        }
    }
}

void
junit_print(FILE *out, const struct limit_result *results, uint32_t result_count, const char *partial)
{
    uint32_t failures = 0;
    for (uint32_t i = 0; i < result_count; i++) failures += results[i].message[0] != '\0';
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<testsuites>\n  <testsuite name=\"vm-trace diff\" tests=\"%" PRIu32 "\" failures=\"%" PRIu32
            "\" errors=\"%d\">\n", result_count + (partial != NULL), failures, partial != NULL);
    if (partial != NULL) {
        fputs("    <testcase classname=\"vm-trace.diff\" name=\"partial\">\n      <error message=\"", out);
        print_text(out, partial);
        fputs("\"/>\n    </testcase>\n", out);
    }
    for (uint32_t i = 0; i < result_count; i++) {
        fprintf(out, "    <testcase classname=\"vm-trace.diff\" name=\"%s\"", results[i].name);
        if (results[i].message[0] == '\0') {
            fputs("/>\n", out);
            continue;
        }
        fputs(">\n      <failure message=\"", out);
        print_text(out, results[i].message);
        fputs("\"/>\n    </testcase>\n", out);
    }
    fputs("  </testsuite>\n</testsuites>\n", out);
}
