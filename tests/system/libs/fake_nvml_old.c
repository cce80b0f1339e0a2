// link: none
/* fake_nvml_old: a driver of long ago: one card, the first names of the functions, memory
 * and temperature, and nothing else. */
struct device;
struct memory {
    unsigned long long total, free, used;
};

int nvmlInit(void);
int nvmlShutdown(void);
int nvmlDeviceGetCount(unsigned *count);
int nvmlDeviceGetHandleByIndex(unsigned index, struct device **device);
int nvmlDeviceGetMemoryInfo(struct device *device, struct memory *memory);
int nvmlDeviceGetTemperature(struct device *device, int sensor, unsigned *celsius);

int nvmlInit(void)
{
    return 0;
}

int nvmlShutdown(void)
{
    return 0;
}

int nvmlDeviceGetCount(unsigned *count)
{
    *count = 1;
    return 0;
}

int nvmlDeviceGetHandleByIndex(unsigned index, struct device **device)
{
    static char card;
    *device = (struct device *)&card;
    return index == 0 ? 0 : 2;
}

int nvmlDeviceGetMemoryInfo(struct device *device, struct memory *memory)
{
    (void)device;
    *memory = (struct memory){ 8ULL << 30, 6ULL << 30, 2ULL << 30 };
    return 0;
}

int nvmlDeviceGetTemperature(struct device *device, int sensor, unsigned *celsius)
{
    (void)device, (void)sensor;
    *celsius = 50;
    return 0;
}
