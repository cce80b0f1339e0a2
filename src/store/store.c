/* store.c: the store, whichever back end keeps it. */
#include "store/store.h"

#include "base/error.h"
#include "base/files.h"
#include "store/sqlite.h"

/* The list of back ends; the first one is what `.sonde` is made with. */
static const struct store_ops *const back_ends[] = {
    &sqlite_ops,
};

void store_path(struct buf *out, const char *dir)
{
    path_join(out, dir, "sonde.db");
}

int store_open(const char *dir, unsigned flags, struct store **ret_store,
               struct buf *ret_why)
{
    struct buf why = BUF_INIT;
    const int rc = back_ends[0]->open(dir, flags, ret_store, &why);
    if (ret_why)
        buf_puts(ret_why, why.data);
    buf_release(&why);
    return rc;
}

void store_close(struct store *store)
{
    if (store)
        store->ops->close(store);
}

int store_begin(struct store *store)
{
    return store->ops->begin(store);
}

int store_commit(struct store *store)
{
    return store->ops->commit(store);
}

void store_rollback(struct store *store)
{
    store->ops->rollback(store);
}

int store_put(struct store *store, const struct experiment *e, unsigned flags)
{
    return store->ops->put(store, e, flags);
}

int store_remove(struct store *store, const char *id)
{
    return store->ops->remove(store, id);
}

int store_forget_directory(struct store *store, const char *id)
{
    return store->ops->forget_directory(store, id);
}

int store_get(struct store *store, const char *id, struct arena *arena,
              struct experiment *ret_experiment)
{
    return store->ops->get(store, id, arena, ret_experiment);
}

int store_find(struct store *store, const char *ref, struct buf *ret_id)
{
    return store->ops->find(store, ref, ret_id);
}

int store_recent(struct store *store, bool logs, uint64_t limit, experiment_fn each,
                 void *arg)
{
    return store->ops->recent(store, logs, limit, each, arg);
}

int store_state(struct store *store, const char *id)
{
    return store->ops->state(store, id);
}

int store_each(struct store *store, int64_t after, int64_t up_to, experiment_fn each,
               void *arg)
{
    return store->ops->each(store, after, up_to, each, arg);
}

int store_last_seq(struct store *store, int64_t *ret_seq, int64_t *ret_removed)
{
    return store->ops->last_seq(store, ret_seq, ret_removed);
}

int store_each_removed(struct store *store, int64_t after, removed_fn each, void *arg)
{
    return store->ops->each_removed(store, after, each, arg);
}

int store_each_baseline(struct store *store, const char *name,
                        int (*each)(void *arg, const struct baseline *b), void *arg)
{
    return store->ops->each_baseline(store, name, each, arg);
}

int store_put_baseline(struct store *store, const struct baseline *b)
{
    return store->ops->put_baseline(store, b);
}

int store_remove_baseline(struct store *store, const char *name)
{
    return store->ops->remove_baseline(store, name);
}

int store_put_receipt(struct store *store, const char *id, const char *run,
                      const char *json)
{
    return store->ops->put_receipt(store, id, run, json);
}

int store_put_artefact(struct store *store, const char *run, const char *path,
                       const char *kind, int64_t bytes)
{
    return store->ops->put_artefact(store, run, path, kind, bytes);
}

int store_sql(struct store *store, const char *text, sql_fn each, void *arg,
              struct buf *ret_why)
{
    return store->ops->sql(store, text, each, arg, ret_why);
}

int store_counts(struct store *store, struct store_counts *ret_counts)
{
    return store->ops->counts(store, ret_counts);
}

int store_verify(struct store *store, struct buf *ret_problems)
{
    return store->ops->verify(store, ret_problems);
}

int store_backup(struct store *store, const char *path)
{
    return store->ops->backup(store, path);
}

int store_setting(struct store *store, const char *key, const char *set,
                  struct buf *ret_value)
{
    return store->ops->setting(store, key, set, ret_value);
}
