/**
 * An in-memory host for developing in a browser and for tests. `src/testing/contract` has the rules of the real one that it keeps. Its
 * parts stand beside each other; each has controls, through which tests set and read its state, and calls.
 */

import type { Platform } from '../types';
import { answers } from './answers';
import { appUpdate, appUpdateControls } from './appUpdate';
import { chats } from './chats';
import { data, dataControls } from './data';
import { desktop, desktopControls } from './desktop';
import { documentControls, documents } from './documents';
import { downloadControls, downloads } from './downloads';
import { elicitationControls, elicitations } from './elicitations';
import { endpointControls, endpoints } from './endpoints';
import { engine, engineControls } from './engine';
import { fileControls, files } from './files';
import { hub, hubControls } from './hub';
import { imageControls, images } from './images';
import { library, libraryControls } from './library';
import { noteControls, notes } from './notes';
import { previewControls, previews } from './previews';
import { server, serverControls } from './server';
import { serverResourceControls, serverResources } from './serverResources';
import { settings } from './settings';
import { shared } from './shared';
import { chatControls, fillers } from './store';
import { toolCallControls, toolCalls } from './toolCalls';
import { toolServerControls, toolServers } from './toolServers';

export { textPart } from './tree';

/** A host without chats; `pace` is the time between two pieces of an answer, in milliseconds. */
export function fakeHost(pace: number) {
  const state = {
    ...shared(pace),
    ...appUpdateControls(),
    ...chatControls(),
    ...dataControls(),
    ...desktopControls(),
    ...documentControls(),
    ...downloadControls(),
    ...elicitationControls(),
    ...endpointControls(),
    ...engineControls(),
    ...fileControls(),
    ...hubControls(),
    ...imageControls(),
    ...libraryControls(),
    ...noteControls(),
    ...previewControls(),
    ...serverControls(),
    ...serverResourceControls(),
    ...toolCallControls(),
    ...toolServerControls(),
  };
  const calls = {
    ...answers(state),
    ...appUpdate(state),
    ...chats(state),
    ...data(state),
    ...desktop(state),
    ...documents(state),
    ...downloads(state),
    ...elicitations(state),
    ...endpoints(state),
    ...engine(state),
    ...files(state),
    ...fillers(state),
    ...hub(state),
    ...images(state),
    ...library(state),
    ...notes(state),
    ...previews(state),
    ...server(state),
    ...serverResources(state),
    ...settings(state),
    ...toolCalls(state),
    ...toolServers(state),
  } satisfies Platform;
  // The parts see the state that tests change; calls have the types of any host, so that a test may replace them.
  const host: Platform & Omit<typeof state & typeof calls, keyof Platform> = Object.assign(state, calls);
  return host;
}

export type FakeHost = ReturnType<typeof fakeHost>;
