/* ogb.h: graphs from a folder of CSV files as the Open Graph Benchmark ships them.
 *
 *     num-node-list.csv.gz   one number per graph
 *     num-edge-list.csv.gz   one number per graph
 *     edge.csv.gz            "source,target" per edge, counted from the graph's first node
 *     node-feat.csv.gz       numbers separated by commas, one line per node; may be missing
 *     graph-label.csv.gz     the same per graph; may be missing
 *
 * plain .csv works too, and the files may lie in a folder `raw` below. Where not every
 * edge has its reverse, the reverses are added: molecules are stored one way. Missing
 * features count as one column of 1; a label that is no number ("nan", "") as 0.
 *
 * Everything is hostile: sizes are checked before memory is asked for.
 */
#ifndef SONDE_MODEL_REF_OGB_H
#define SONDE_MODEL_REF_OGB_H

#include <stddef.h>

#include "model/ref/graphs.h"

enum { OGB_ERROR_LEN = 192 };

enum ogb_file {
    OGB_NODES,
    OGB_EDGE_COUNTS,
    OGB_EDGES,
    OGB_FEATURES,
    OGB_LABELS,
    OGB_FILES
};

/* "edge.csv" … */
const char *ogb_file_name(enum ogb_file file);

/* One file's text; data NULL: the file is missing. */
struct ogb_text {
    const char *data;
    size_t len;
};

/* At most `limit` graphs (0: all). 0, −ENOMEM, or SONDE_E_FORMAT with a sentence in
 * ret_error: "edge.csv, line 7: node 12 in a graph of 10". */
int ogb_parse(const struct ogb_text texts[OGB_FILES], size_t limit,
              struct graphs *ret_graphs, char ret_error[OGB_ERROR_LEN]);

int ogb_load(const char *folder, size_t limit, struct graphs *ret_graphs,
             char ret_error[OGB_ERROR_LEN]);

#endif
