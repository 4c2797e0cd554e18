import { createContext } from 'svelte';

import type { Platform } from './types';

/** The host that this window talks to. */
export const [usePlatform, providePlatform] = createContext<Platform>();
