/* A small table server: definitions, data and index of tables, a query cache, a table cache, a key cache, a binary log.
 *
 *   server PORT [SWITCH...]
 *
 * Each connection has a thread; a request is a line, a reply ends with a line of two dashes. A statement holds one lock
 * from its first to its last step, so that all statements are serializable. Each switch opens one gap in which the lock
 * is given up: a re-creation of a concurrency bug of MySQL (Table 5.2 of the thesis on PIKE), or a deliberate deviation.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define TABLES 16
#define ROWS 64
#define ENTRIES 16

/* Gaps. */
static int create_like;   /* between the definition of a new table and its data */
static int create_select; /* between a new table and its rows */
static int show_status;   /* between the list of names and the tables */
static int query_cache;   /* between a result and its way into the query cache */
static int careful_cache; /* the same, but what was written meanwhile keeps it out */
static int table_cache;   /* between looking at a table and putting it into the table cache */
static int key_cache;     /* between reading an index and putting it into the key cache */
static int log_order;     /* between a change and its way into the binary log */
static int warm_tables;   /* a table that a statement has open stays in the table cache when the cache is flushed */
static int say_who;       /* replies begin with the time and a random word */

static const struct {
    const char *name;
    int *is_on;
} switches[] = {
    {"create_like", &create_like},     {"create_select", &create_select}, {"show_status", &show_status},
    {"query_cache", &query_cache},     {"careful_cache", &careful_cache}, {"table_cache", &table_cache},
    {"key_cache", &key_cache},         {"log_order", &log_order},         {"warm_tables", &warm_tables},
    {"say_who", &say_who},
};

struct table {
    char name[32];
    int has_definition, has_data, has_index;
    long data[ROWS], index[ROWS];
    int rows, keys;
    char merges[32]; /* the table whose rows it shows */
};

struct cached_table {
    char name[32];
    int rows, is_open;
};

struct cached_query {
    char query[256], reply[1024], tables[64];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct table tables[TABLES];
static struct cached_table open_tables[ENTRIES];
static struct cached_query queries[ENTRIES];
static struct {
    char name[32];
    long keys[ROWS];
    int count;
} key_blocks[ENTRIES];
static char binary_log[4096];
static int writes;

/* Lets others come in. */
static void gap(int is_on)
{
    if (is_on) {
        pthread_mutex_unlock(&lock);
        pthread_mutex_lock(&lock);
    }
}

struct reply {
    char text[4096];
    size_t length;
};

static void say(struct reply *reply, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    size_t room = sizeof reply->text - reply->length;
    int length = vsnprintf(reply->text + reply->length, room, format, arguments);
    if (length > 0)
        reply->length += (size_t)length < room ? (size_t)length : room - 1;
    va_end(arguments);
}

static struct table *slot(const char *name, int makes)
{
    struct table *free_one = 0;
    for (int i = 0; i < TABLES; i++) {
        if (!strcmp(tables[i].name, name))
            return &tables[i];
        if (!tables[i].name[0] && !free_one)
            free_one = &tables[i];
    }
    if (!makes || !free_one)
        return 0;
    memset(free_one, 0, sizeof *free_one);
    snprintf(free_one->name, sizeof free_one->name, "%s", name);
    return free_one;
}

static struct table *defined(const char *name)
{
    struct table *table = slot(name, 0);
    return table && table->has_definition ? table : 0;
}

static void log_statement(const char *statement)
{
    strncat(binary_log, statement, sizeof binary_log - strlen(binary_log) - 2);
    strcat(binary_log, "\n");
}

/* What is remembered of a table is no longer true. */
static void invalidate(const char *name)
{
    writes++;
    for (int i = 0; i < ENTRIES; i++) {
        if (strstr(queries[i].tables, name))
            queries[i].query[0] = queries[i].tables[0] = 0;
        if (!strcmp(open_tables[i].name, name))
            open_tables[i].name[0] = 0;
    }
}

static void remember_table(const char *name, int rows, int is_open)
{
    int at = -1;
    for (int i = 0; i < ENTRIES; i++)
        if (!open_tables[i].name[0] && at < 0)
            at = i;
    for (int i = 0; i < ENTRIES; i++)
        if (!strcmp(open_tables[i].name, name))
            at = i;
    if (at < 0)
        return;
    snprintf(open_tables[at].name, sizeof open_tables[at].name, "%s", name);
    open_tables[at].rows = rows;
    open_tables[at].is_open = is_open;
}

static void remember_query(const char *query, const char *reply, const char *of)
{
    for (int i = 0; i < ENTRIES; i++)
        if (!queries[i].query[0]) {
            snprintf(queries[i].query, sizeof queries[i].query, "%s", query);
            snprintf(queries[i].reply, sizeof queries[i].reply, "%s", reply);
            snprintf(queries[i].tables, sizeof queries[i].tables, "%s", of);
            return;
        }
}

static void create(struct reply *reply, const char *statement, char *words[], int count)
{
    const char *name = words[2];
    if (defined(name)) {
        say(reply, "ERROR table %s exists\n", name);
        return;
    }
    struct table *from = count > 4 ? defined(words[count - 1]) : 0;
    if (count > 4 && !from) {
        say(reply, "ERROR no table %s\n", words[count - 1]);
        return;
    }
    struct table *table = slot(name, 1);
    if (!table) {
        say(reply, "ERROR too many tables\n");
        return;
    }
    table->has_definition = 1;
    table->rows = table->keys = 0;
    int copies_rows = count > 4 && !strcmp(words[3], "SELECT");
    gap(create_like && count > 4 && !copies_rows);
    table->has_data = table->has_index = 1;
    if (count > 4 && !strcmp(words[3], "MERGE"))
        snprintf(table->merges, sizeof table->merges, "%s", words[4]);
    if (copies_rows) {
        gap(create_select);
        if (table->has_definition) {
            table->rows = table->keys = from->rows;
            memcpy(table->data, from->data, sizeof table->data);
            memcpy(table->index, from->index, sizeof table->index);
        } else {
            /* It is gone; what is left is an index that belongs to nobody. */
            snprintf(table->name, sizeof table->name, "%s", name);
            table->has_index = 1;
        }
    }
    log_statement(statement);
    say(reply, "OK %d rows\n", table->has_definition ? table->rows : 0);
}

static void drop(struct reply *reply, const char *statement, const char *name)
{
    struct table *table = defined(name);
    if (!table) {
        say(reply, "ERROR no table %s\n", name);
        return;
    }
    invalidate(name);
    table->has_definition = table->has_data = table->has_index = 0;
    table->name[0] = 0;
    log_statement(statement);
    say(reply, "OK\n");
}

static void add_row(struct table *table, long value)
{
    if (table->rows == ROWS)
        return;
    table->data[table->rows++] = value;
    table->index[table->keys++] = value;
    for (int i = 0; i < ENTRIES; i++)
        if (!strcmp(key_blocks[i].name, table->name))
            key_blocks[i].keys[key_blocks[i].count++] = value;
}

/* INSERT INTO t1 VALUES 1 2 3, INSERT INTO t2 SELECT * FROM t1 */
static void insert(struct reply *reply, const char *statement, char *words[], int count)
{
    struct table *table = defined(words[2]);
    if (!table) {
        say(reply, "ERROR no table %s\n", words[2]);
        return;
    }
    if (!table->has_data) {
        say(reply, "ERROR the data file of %s does not exist\n", words[2]);
        return;
    }
    int before = table->rows;
    if (!strcmp(words[3], "SELECT")) {
        struct table *from = defined(words[count - 1]);
        for (int i = 0; from && i < from->rows; i++)
            add_row(table, from->data[i]);
    } else {
        for (int i = 4; i < count; i++)
            add_row(table, atol(words[i]));
    }
    invalidate(table->name);
    log_statement(statement);
    say(reply, "OK %d rows\n", table->rows - before);
}

static void aggregate(struct reply *reply, const char *what, struct table *table)
{
    long sum = 0, most = 0;
    for (int i = 0; i < table->rows; i++) {
        sum += table->data[i];
        most = table->data[i] > most ? table->data[i] : most;
        if (!strcmp(what, "*"))
            say(reply, "%ld\n", table->data[i]);
    }
    if (!strcmp(what, "SUM"))
        say(reply, "%ld\n", sum);
    else if (!strcmp(what, "MAX"))
        say(reply, "%ld\n", most);
    else if (!strcmp(what, "COUNT"))
        say(reply, "%d\n", table->rows);
}

/* The keys of a table, through the key cache. */
static void read_keys(struct table *table)
{
    int at = -1;
    for (int i = 0; i < ENTRIES; i++) {
        if (!strcmp(key_blocks[i].name, table->name))
            return;
        if (!key_blocks[i].name[0] && at < 0)
            at = i;
    }
    long keys[ROWS];
    int count = table->keys;
    memcpy(keys, table->index, sizeof keys);
    gap(key_cache);
    if (at < 0)
        return;
    memcpy(key_blocks[at].keys, keys, sizeof keys);
    key_blocks[at].count = count;
    snprintf(key_blocks[at].name, sizeof key_blocks[at].name, "%s", table->name);
}

/* SELECT * FROM t1; SUM, MAX and COUNT; SELECT * FROM t1 FORCE KEY */
static void select_rows(struct reply *reply, const char *statement, char *words[], int count)
{
    for (int i = 0; i < ENTRIES; i++)
        if (!strcmp(queries[i].query, statement)) {
            say(reply, "%s", queries[i].reply);
            return;
        }
    struct table *table = defined(words[3]);
    if (!table) {
        say(reply, "ERROR no table %s\n", words[3]);
        return;
    }
    char of[64];
    snprintf(of, sizeof of, "%s %s", table->name, table->merges);
    if (table->merges[0])
        table = defined(table->merges);
    if (!table) {
        say(reply, "ERROR no table behind %s\n", words[3]);
        return;
    }
    if (count > 4)
        read_keys(table);
    int before = table->rows, seen = writes;
    gap(table_cache);
    remember_table(table->name, before, 0);
    size_t start = reply->length;
    aggregate(reply, words[1], table);
    gap(query_cache);
    gap(careful_cache);
    if (!careful_cache || seen == writes)
        remember_query(statement, reply->text + start, of);
}

static void truncate_table(struct reply *reply, const char *statement, const char *name)
{
    struct table *table = defined(name);
    if (!table) {
        say(reply, "ERROR no table %s\n", name);
        return;
    }
    table->rows = table->keys = 0;
    invalidate(name);
    log_statement(statement);
    say(reply, "OK\n");
}

/* Logged even if it fails, as MySQL does. */
static void optimize(struct reply *reply, const char *statement, const char *name)
{
    struct table *table = defined(name);
    if (table) {
        remember_table(table->name, table->rows, warm_tables);
        say(reply, "OK\n");
    } else {
        say(reply, "ERROR no table %s\n", name);
    }
    gap(log_order);
    log_statement(statement);
    gap(warm_tables);
    for (int i = 0; i < ENTRIES; i++)
        open_tables[i].is_open = 0;
}

static void flush(struct reply *reply, const char *statement)
{
    for (int i = 0; i < ENTRIES; i++)
        if (!open_tables[i].is_open)
            open_tables[i].name[0] = 0;
    gap(log_order);
    log_statement(statement);
    say(reply, "OK\n");
}

static void show(struct reply *reply, char *words[], int count)
{
    if (!strcmp(words[1], "TABLES")) {
        for (int i = 0; i < TABLES; i++)
            if (tables[i].name[0])
                say(reply, "%s definition %d data %d index %d rows %d keys %d\n", tables[i].name,
                    tables[i].has_definition, tables[i].has_data, tables[i].has_index, tables[i].rows, tables[i].keys);
    } else if (!strcmp(words[1], "STATUS")) {
        char names[TABLES][32];
        int found = 0;
        for (int i = 0; i < TABLES; i++)
            if (tables[i].has_definition && (count < 3 || !strcmp(tables[i].name, words[2])))
                memcpy(names[found++], tables[i].name, sizeof names[0]);
        gap(show_status);
        for (int i = 0; i < found; i++) {
            struct table *table = defined(names[i]);
            if (table)
                say(reply, "%s %d\n", names[i], table->rows);
            else
                say(reply, "%s NULL\n", names[i]);
        }
    } else if (!strcmp(words[1], "LOG")) {
        say(reply, "%s", binary_log);
    } else if (!strcmp(words[1], "QUERIES")) {
        for (int i = 0; i < ENTRIES; i++)
            if (queries[i].query[0])
                say(reply, "%s: %zu bytes\n", queries[i].query, strlen(queries[i].reply));
    } else if (!strcmp(words[1], "OPEN")) {
        for (int i = 0; i < ENTRIES; i++)
            if (open_tables[i].name[0])
                say(reply, "%s %d\n", open_tables[i].name, open_tables[i].rows);
    } else if (!strcmp(words[1], "KEYS")) {
        for (int i = 0; i < ENTRIES; i++)
            if (key_blocks[i].name[0])
                say(reply, "%s %d\n", key_blocks[i].name, key_blocks[i].count);
    } else {
        say(reply, "ERROR show what?\n");
    }
}

static void execute(struct reply *reply, const char *statement)
{
    char copy[256], *words[32] = {"", "", "", "", ""};
    int count = 0;
    snprintf(copy, sizeof copy, "%s", statement);
    for (char *rest = copy, *word; count < 32 && (word = strtok_r(rest, " ", &rest));)
        words[count++] = word;
    pthread_mutex_lock(&lock);
    if (say_who) {
        struct timespec now;
        unsigned word = 0;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (getrandom(&word, sizeof word, 0) == sizeof word)
            say(reply, "at %ld by %08x\n", now.tv_nsec, word);
    }
    if (!strcmp(words[0], "CREATE") && count >= 3)
        create(reply, statement, words, count);
    else if (!strcmp(words[0], "DROP") && count == 3)
        drop(reply, statement, words[2]);
    else if (!strcmp(words[0], "INSERT") && count >= 5)
        insert(reply, statement, words, count);
    else if (!strcmp(words[0], "SELECT") && count >= 4)
        select_rows(reply, statement, words, count);
    else if (!strcmp(words[0], "TRUNCATE") && count == 3)
        truncate_table(reply, statement, words[2]);
    else if (!strcmp(words[0], "OPTIMIZE") && count == 3)
        optimize(reply, statement, words[2]);
    else if (!strcmp(words[0], "FLUSH"))
        flush(reply, statement);
    else if (!strcmp(words[0], "SHOW") && count >= 2)
        show(reply, words, count);
    else
        say(reply, "ERROR what is `%s`?\n", statement);
    pthread_mutex_unlock(&lock);
}

static void *serve(void *argument)
{
    int connection = (int)(long)argument;
    char line[256];
    size_t length = 0;
    for (;;) {
        ssize_t got = read(connection, line + length, sizeof line - 1 - length);
        if (got <= 0)
            break;
        length += (size_t)got;
        char *end = memchr(line, '\n', length);
        if (!end) {
            if (length == sizeof line - 1)
                break;
            continue;
        }
        *end = 0;
        struct reply reply = {.length = 0};
        execute(&reply, line);
        say(&reply, "--\n");
        for (size_t sent = 0; sent < reply.length;) {
            ssize_t now = write(connection, reply.text + sent, reply.length - sent);
            if (now <= 0)
                break;
            sent += (size_t)now;
        }
        length -= (size_t)(end + 1 - line);
        memmove(line, end + 1, length);
    }
    close(connection);
    return 0;
}

int main(int count, char *arguments[])
{
    for (int i = 2; i < count; i++) {
        int is_known = 0;
        for (size_t k = 0; k < sizeof switches / sizeof switches[0]; k++)
            if (!strcmp(arguments[i], switches[k].name))
                is_known = *switches[k].is_on = 1;
        if (!is_known) {
            fprintf(stderr, "no switch %s\n", arguments[i]);
            return 2;
        }
    }
    int listening = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((unsigned short)atoi(count > 1 ? arguments[1] : "4000")),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    if (bind(listening, (struct sockaddr *)&address, sizeof address) || listen(listening, 16)) {
        perror("server");
        return 1;
    }
    for (;;) {
        int connection = accept(listening, 0, 0);
        pthread_t thread;
        if (connection < 0 || pthread_create(&thread, 0, serve, (void *)(long)connection))
            return 1;
        pthread_detach(thread);
    }
}
