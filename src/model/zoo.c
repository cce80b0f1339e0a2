/* zoo.c: see zoo.h. */
#include "model/zoo.h"

#include <string.h>

#define TORCHVISION "torchvision's weights, num_params and _ops (GMAC): "
#define BENCHMARKING                                                                   \
    "benchmarking-gnns leaderboard, PATTERN, 500k (Dwivedi et al., arXiv 2003.00982)"
#define OGB "OGB leaderboard, ogbn-arxiv (Hu et al., arXiv 2005.00687)"
#define OGB_CODE                                                                       \
    "OGB's examples/nodeproppred/arxiv/gnn.py; the leaderboard of May 2020 says "      \
    "142,888, 128 · 256 more"
#define CALFLOPS "calculate-flops.pytorch, table of large language models"

static const struct zoo_model models[] = {
    { "vit_b_16", "ViT-B/16", "1 image of 3×224×224", TORCHVISION "vit_b_16", 17.5638,
      4, "GMAC", 86567656, zoo_vit_b_16 },
    { "vit_l_16", "ViT-L/16", "1 image of 3×224×224", TORCHVISION "vit_l_16", 61.555, 3,
      "GMAC", 304326632, zoo_vit_l_16 },
    { "vit_l_32", "ViT-L/32", "1 image of 3×224×224", TORCHVISION "vit_l_32", 15.378, 3,
      "GMAC", 306535400, zoo_vit_l_32 },
    { "resnet50", "ResNet-50", "1 image of 3×224×224", TORCHVISION "resnet50", 4.08918,
      5, "GMAC", 25557032, zoo_resnet50 },
    { "vgg16", "VGG-16", "1 image of 3×224×224", TORCHVISION "vgg16", 15.47, 2, "GMAC",
      138357544, zoo_vgg16 },
    { "mobilenet_v2", "MobileNetV2", "1 image of 3×224×224", TORCHVISION "mobilenet_v2",
      0.301, 3, "GMAC", 3504872, zoo_mobilenet_v2 },
    { "gpt2_124m", "GPT-2 124M", "1,024 tokens", "Radford et al. 2019, with head",
      291.65, 2, "GFLOP", 124439808, zoo_gpt2_124m },
    { "gpt2_xl", "GPT-2 XL", "1,024 tokens",
      "Radford et al. 2019; KerasHub's preset gpt2_extra_large_en", 0, 0, NULL,
      1557611200, zoo_gpt2_xl },
    { "bert_base", "BERT-base", "128 tokens",
      "Devlin et al., arXiv 1810.04805; bert-base-uncased", 11.174, 3, "GMAC",
      109482240, zoo_bert_base },
    { "llama2_7b", "Llama 2 7B", "128 tokens",
      "Touvron et al., arXiv 2307.09288; figures: " CALFLOPS, 850.00, 2, "GMAC",
      6738415616, zoo_llama2_7b },
    { "gcn_pattern", "GCN, 16 layers of 172", "1 graph of 118 nodes, 6,079 edges",
      BENCHMARKING, 0, 0, NULL, 500823, zoo_gcn_pattern },
    { "gat_pattern", "GAT, 16 layers of 8 × 22", "1 graph of 118 nodes, 6,079 edges",
      BENCHMARKING, 0, 0, NULL, 526990, zoo_gat_pattern },
    { "gatedgcn_pattern", "GatedGCN, 16 layers of 78",
      "1 graph of 118 nodes, 6,079 edges", BENCHMARKING, 0, 0, NULL, 502223,
      zoo_gatedgcn_pattern },
    { "gcn_arxiv", "GCN, 3 layers of 256", "169,343 nodes, 2,315,598 directed edges",
      OGB_CODE, 0, 0, NULL, 110120, zoo_gcn_arxiv },
    { "sage_arxiv", "GraphSAGE, 3 layers of 256",
      "169,343 nodes, 2,315,598 directed edges", OGB, 0, 0, NULL, 218664,
      zoo_sage_arxiv },
    { "gps_zinc", "GPS, 10 layers of 64", "1 graph of 23 nodes, 50 edges",
      "GraphGPS, configs/GPS/zinc-GPS+RWSE.yaml (Rampášek et al., arXiv 2205.12454)", 0,
      0, NULL, 423717, zoo_gps_zinc },
};

enum { COUNT = sizeof models / sizeof *models };

const struct zoo_model *zoo_at(size_t index)
{
    return index < COUNT ? &models[index] : NULL;
}

const struct zoo_model *zoo_find(const char *name)
{
    for (size_t i = 0; i < COUNT; i++)
        if (strcmp(models[i].name, name) == 0)
            return &models[i];
    return NULL;
}
