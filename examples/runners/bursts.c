/* A runner in C without a library: it counts the loud bursts in a recording and says the number as a word.
 *
 *     cc -O2 -o bursts examples/runners/bursts.c -lm
 *     speechmeter run --model runner:./bursts --audio sample
 *
 * It takes sound as a file of 32-bit floats, stamps its work with its own clock, and answers a line for each line. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FRAME = 400, MOST_LINE = 1 << 20 }; /* 25 ms at 16 kHz */
static const char *const WORDS[] = {"none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"};

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

/* The text behind "key":" in a line, ended in place; NULL where there is none. */
static char *text_of(char *line, const char *key)
{
    char *start = strstr(line, key);
    if (!start)
        return NULL;
    start += strlen(key);
    char *end = strchr(start, '"');
    if (end)
        *end = '\0';
    return start;
}

/* How often the loudness rises above a threshold; -1 where the file cannot be read. */
static int bursts(const char *path, float threshold)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return -1;
    float frame[FRAME];
    int count = 0, loud = 0;
    for (size_t read; (read = fread(frame, sizeof *frame, FRAME, file)) > 0;) {
        double sum = 0;
        for (size_t i = 0; i < read; i++)
            sum += frame[i] * frame[i];
        int now = sqrt(sum / read) > threshold;
        count += now && !loud;
        loud = now;
    }
    fclose(file);
    return count;
}

int main(void)
{
    char *line = malloc(MOST_LINE);
    float threshold = 0.05f;
    if (!line)
        return 1;
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("{\"type\":\"hello\",\"version\":1,\"name\":\"bursts\",\"sound\":\"f32\"}");
    while (fgets(line, MOST_LINE, stdin)) {
        if (strstr(line, "\"type\":\"load\"")) {
            char *given = strstr(line, "\"threshold\":");
            if (given)
                threshold = strtof(given + strlen("\"threshold\":"), NULL);
            printf("{\"type\":\"loaded\",\"notes\":[\"loud is above %g\"]}\n", threshold);
        } else if (strstr(line, "\"type\":\"feed\"")) {
            double begun = seconds();
            char *number = strstr(line, "\"id\":");
            long id = number ? strtol(number + strlen("\"id\":"), NULL, 10) : 0;
            char *path = text_of(line, "\"path\":\"");
            int count = path ? bursts(path, threshold) : -1;
            if (count < 0)
                puts("{\"type\":\"error\",\"message\":\"there is no file to read\"}");
            else
                printf("{\"type\":\"result\",\"id\":%ld,\"texts\":[\"%s\"],\"seconds\":%.9f}\n", id,
                       count < 10 ? WORDS[count] : "many", seconds() - begun);
        } else if (strstr(line, "\"type\":\"bye\"")) {
            break;
        }
    }
    free(line);
    return 0;
}
