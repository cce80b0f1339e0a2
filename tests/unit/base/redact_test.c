#include "base/redact.h"

#include <string.h>

#include "unit.h"

enum { MAX_ARGS = 8 };

struct line {
    const char *in[MAX_ARGS];
    const char *out[MAX_ARGS];
};

static void expect_lines(const struct line *lines, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int argc = 0;
        while (argc < MAX_ARGS && lines[i].in[argc])
            argc++;
        struct arena a = ARENA_INIT;
        char **argv;
        assert_int_equal(redact_args(argc, (char *const *)lines[i].in, &a, &argv), 0);
        for (int k = 0; k < argc; k++)
            assert_string_equal(argv[k], lines[i].out[k]);
        assert_null(argv[argc]);
        arena_release(&a);
    }
}

#define R REDACTED_TEXT
/* Invented, and put together here so that no scanner takes this file for a leak. */
#define HEX20  "0a1b2c3d4e5f6a7b8c9d"
#define GHP    "ghp_" HEX20 HEX20
#define HF     "hf_" HEX20 "AbCdEfGhIj"
#define AWS    "AKIA0A1B2C3D4E5F6A7B"
#define OPENAI "sk-proj-" HEX20 HEX20
#define JWT    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"

static void secrets_in_arguments_are_replaced(void **state)
{
    (void)state;
    static const struct line lines[] = {
        { { "--api-key=XYZ" }, { "--api-key=" R } },
        { { "--token", "XYZ", "x" }, { "--token", R, "x" } },
        { { "-token", "XYZ" }, { "-token", R } },
        { { "--apiKey=XYZ" }, { "--apiKey=" R } },
        { { "--APIKey", "XYZ" }, { "--APIKey", R } },
        { { "--wandb_api_key", "abc" }, { "--wandb_api_key", R } },
        { { "--key=abcdef" }, { "--key=" R } },
        { { "WANDB_API_KEY=abc" }, { "WANDB_API_KEY=" R } },
        { { "HF_TOKEN=abc" }, { "HF_TOKEN=" R } },
        { { "API_TOKEN_2=abc" }, { "API_TOKEN_2=" R } },
        { { "+logger.wandb.api_key=abc" }, { "+logger.wandb.api_key=" R } },
        { { "--env", "DB_PASSWORD=a b,c" }, { "--env", "DB_PASSWORD=" R } },
        { { "--password", "hunter2" }, { "--password", R } },
        { { "--password=1234" }, { "--password=" R } },
        { { "PGPASSWORD=x" }, { "PGPASSWORD=" R } },
        { { "MYSQL_PWD=x" }, { "MYSQL_PWD=" R } },
        { { "--db-passwd", "x" }, { "--db-passwd", R } },
        { { "--client-secret", "x" }, { "--client-secret", R } },
        { { "AWS_SECRET_ACCESS_KEY=x" }, { "AWS_SECRET_ACCESS_KEY=" R } },
        { { "--aws-credentials=x" }, { "--aws-credentials=" R } },
        { { "--auth", "user:pw" }, { "--auth", R } },
        { { "--bearer", "abc" }, { "--bearer", R } },
        { { "--db", "postgres://me:pw@host/db" },
          { "--db", "postgres://me:" R "@host/db" } },
        { { "https://u:p@ss@h/x" }, { "https://u:" R "@h/x" } },
        { { "--url=https://u:p@h/x" }, { "--url=https://u:" R "@h/x" } },
        { { "https://h/x?token=abc&n=1" }, { "https://h/x?token=" R "&n=1" } },
        { { "-H", "Authorization: Bearer abc def" }, { "-H", "Authorization: " R } },
        { { "-H", "X-API-Key: abc" }, { "-H", "X-API-Key: " R } },
        { { "--config", "{\"api_key\": \"a,b\", \"lr\": 1}" },
          { "--config", "{\"api_key\": \"" R "\", \"lr\": 1}" } },
        { { "sh", "-c", "cd x; HF_TOKEN=abc train --password 'x y' --lr 1" },
          { "sh", "-c", "cd x; HF_TOKEN=" R " train --password '" R "' --lr 1" } },
        { { "sh", "-c", "x \"{\\\"api_key\\\": \\\"a b\\\"}\"" },
          { "sh", "-c", "x \"{\\\"api_key\\\": \\\"" R "\"}\"" } },
        { { "train.py", GHP }, { "train.py", R } },
        { { "--note=" HF }, { "--note=" R } },
        { { "x/" AWS "/y" }, { "x/" R "/y" } },
        { { OPENAI }, { R } },
        { { "run", "--jwt-like", JWT }, { "run", "--jwt-like", R } },
        { { "https://" GHP "@github.com/x" }, { "https://" R "@github.com/x" } },
    };
    expect_lines(lines, sizeof(lines) / sizeof(lines[0]));
}

static void harmless_arguments_stay_as_they_are(void **state)
{
    (void)state;
    static const char *const lines[][MAX_ARGS] = {
        { "python", "-u", "train.py", "--lr", "0.1" },
        { "--keyframes=3" },
        { "--keyframes", "all" },
        { "--tokenizer=gpt2" },
        { "--tokenizer", "gpt2" },
        { "--max_tokens", "512" },
        { "--max-tokens=unlimited" },
        { "--key-dim", "64" },
        { "--key=64" },
        { "--token", "1000" },
        { "--pad-token", "<pad>" },
        { "--eos_token=</s>" },
        { "--sort-key", "length" },
        { "--monitor-key=val_loss" },
        { "--token-type", "bert" },
        { "--token_dropout=0.1" },
        { "--key_padding_mask", "left" },
        { "--num-keys=many" },
        { "--monkey=banana" },
        { "--keyboard", "us" },
        { "--author", "Ann" },
        { "--authors=Ann" },
        { "--password-file", "/run/pw" },
        { "--auth-mode=kerberos" },
        { "--auth", "none" },
        { "--auth=true" },
        { "--token=" },
        { "--token" },
        { "--token", "--lr", "3" },
        { "--no-auth", "train.py" },
        { "--use-auth-token", "train.py" },
        { "--forward-pass", "twice" },
        { "--bypass", "cache" },
        { "--compass=north" },
        { "https://host:8080/path@v2" },
        { "ssh://git@github.com/x" },
        { "user@host:dir" },
        { "--secretary=Bob" },
        { "task-0123456789abcdef0123456789" },
        { "--model=sk-learn" },
        { "sk-learn-linear-regression-baseline" },
        { "hf_hub_download" },
        { "--commit=0123456789abcdef0123456789abcdef01234567" },
        { "eyJhbGciOiJIUzI1NiJ9" },
        { "std::auth::Key", "a:b" },
        { "if password == other" },
        { "-", "--", "-x", "=", "=x", "" },
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct line same = { 0 };
        memcpy(same.in, lines[i], sizeof(same.in));
        memcpy(same.out, lines[i], sizeof(same.out));
        expect_lines(&same, 1);
    }
}

static void expect_env(const char *name, const char *value, const char *expected)
{
    struct buf out = BUF_INIT;
    redact_env(&out, name, value);
    assert_string_equal(out.data, expected);
    buf_release(&out);
}

static void environment_variables_are_judged_by_name_and_value(void **state)
{
    (void)state;
    expect_env("OPENAI_API_KEY", "abc", R);
    expect_env("GITHUB_TOKEN", "abc", R);
    expect_env("ANYTHING", "see " GHP " there", "see " R " there");
    expect_env("DATABASE_URL", "mysql://a:b@c/d", "mysql://a:" R "@c/d");
    expect_env("PWD", "/home/ann", "/home/ann");
    expect_env("OLDPWD", "/home/ann", "/home/ann");
    expect_env("SSH_AUTH_SOCK", "/tmp/agent", "/tmp/agent");
    expect_env("XAUTHORITY", "/root/.Xauthority", "/root/.Xauthority");
    expect_env("AWS_SHARED_CREDENTIALS_FILE", "/x", "/x");
    expect_env("TOKENIZERS_PARALLELISM", "false", "false");
    expect_env("PATH", "/bin:/usr/bin", "/bin:/usr/bin");
    expect_env("API_KEY", "", "");
}

static void very_long_names_and_texts_are_handled(void **state)
{
    (void)state;
    char text[4096];
    memset(text, 'a', sizeof(text));
    for (size_t i = 0; i < 4000; i += 4)
        text[i] = '_';
    strcpy(text + 4000, "_api_key=abc");
    struct arena a = ARENA_INIT;
    char *args[] = { text, NULL };
    char **argv;
    assert_int_equal(redact_args(1, args, &a, &argv), 0);
    assert_null(strstr(argv[0], "abc"));
    assert_non_null(strstr(argv[0], "_api_key=" R));
    arena_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(secrets_in_arguments_are_replaced),
        cmocka_unit_test(harmless_arguments_stay_as_they_are),
        cmocka_unit_test(environment_variables_are_judged_by_name_and_value),
        cmocka_unit_test(very_long_names_and_texts_are_handled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
