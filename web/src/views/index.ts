// The one list of views, in the order people look at a run.
import type { View } from "../view";
import { calls } from "./calls";
import { code } from "./code";
import { compare } from "./compare";
import { distributions } from "./distributions";
import { energy } from "./energy";
import { findings } from "./findings";
import { flame } from "./flame";
import { io } from "./io";
import { loaders } from "./loaders";
import { memory } from "./memory";
import { monitors } from "./monitors";
import { overview } from "./overview";
import { processes } from "./processes";
import { provenance } from "./provenance";
import { timeline } from "./timeline";

export const views: View[] = [overview, findings, compare, timeline, flame, distributions, calls, code, loaders, memory, io, processes, monitors, energy, provenance];
