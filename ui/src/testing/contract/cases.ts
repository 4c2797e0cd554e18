/**
 * The rules of every host, stated once and asked of both: `contract.test.ts` asks the in-memory host, `tests/contract.rs` asks the
 * app inside its own window. A case that only one of them passes means that the windows are tested against something that
 * does not exist. A rule that no case states must not be relied on in the in-memory host.
 *
 * A case starts anywhere and leaves nothing behind that another would notice. It asks questions whose answers both hosts can
 * give: the built-in model counts, the in-memory host tells a story.
 */

import type { Content } from '../../bindings/Content';
import type { Settings } from '../../bindings/Settings';
import { words } from '../../shared/messageParts';
import { branchCases } from './branches';
import {
  type Case,
  finished,
  follow,
  heard,
  holds,
  isRunning,
  MISSING,
  PEBBLE,
  plain,
  refused,
  rises,
  same,
  SHORT,
  some,
  textOf,
  within,
} from './checks';
import { documentCases } from './documents';
import { noteCases } from './notes';
import { libraryCases } from './library';
import { settingsCases } from './settings';
import { toolCases } from './tools';
import type { Unsubscribe } from '../../host/types';

/** Long enough to be stopped in the middle. */
const LONG = 'Count from 1 to 120';
/** A PNG file of 7 by 5 pixels, in base64. */
const IMAGE =
  'iVBORw0KGgoAAAANSUhEUgAAAAcAAAAFCAIAAAAG+GGPAAAAEUlEQVR4nGOwqTiBiRhoJAoAF1sz9aUxn24AAAAASUVORK5CYII=';

export const cases: readonly Case[] = [
  {
    name: 'a chat keeps its settings and its draft',
    async run(host) {
      const settings = { ...plain, system_prompt: 'Be brief.', thinking_budget: 64 };
      const { summary } = await host.createChat(settings);
      await host.setDraft(summary.id, words('half a quest'));
      let view = await host.chat(summary.id);
      same(view.settings, settings, 'the settings it was created with');
      same(view.draft, words('half a quest'), 'the draft');
      same((await host.chats()).find(({ id }) => id === summary.id)?.has_draft, true, 'the mark of the draft');
      same(view.messages, [], 'its messages');
      await host.setChatSettings(summary.id, { ...settings, thinking: 'on' });
      view = await host.chat(summary.id);
      same(view.settings.thinking, 'on', 'the switch');
      await host.deleteChat(summary.id);
    },
  },
  {
    name: 'what happens to a chat is announced and listed',
    async run(host) {
      const { summary } = await host.createChat(plain);
      const listed = async (): Promise<boolean> => (await host.chats()).some((chat) => chat.id === summary.id);
      const announced = async (change: () => Promise<unknown>): Promise<void> => {
        await heard((listener) => host.onChatsChanged(listener), change);
      };
      const { snapshot, whole } = await host.chatsSince(null);
      await announced(() => host.renameChat(summary.id, 'A name'));
      await announced(() => host.pinChat(summary.id, true));
      const since = await host.chatsSince(snapshot);
      same([whole, since.whole], [true, false], 'whether the list is given whole');
      same(since.chats.map(({ title, pinned }) => [title, pinned]), [['A name', true]], 'what has changed since');
      same(since.gone, [], 'what has gone since');
      const renamed = (await host.chats()).find((chat) => chat.id === summary.id);
      same([renamed?.title, renamed?.pinned], ['A name', true], 'its title, and whether it is pinned');
      await announced(() => host.deleteChat(summary.id));
      same(await listed(), false, 'whether a deleted chat is listed');
      same((await host.chatsSince(since.snapshot)).gone, [summary.id], 'what has gone');
      await announced(() => host.restoreChat(summary.id));
      same(await listed(), true, 'whether a restored chat is listed');
      await host.deleteChat(summary.id);
    },
  },
  {
    name: 'what is not there is not_found',
    async run(host) {
      await refused('not_found', () => host.chat(MISSING));
      await refused('not_found', () => host.earlierMessages(MISSING));
      await refused('not_found', () => host.renameChat(MISSING, 'x'));
      await refused('not_found', () => host.send(MISSING, words(SHORT), 'end'));
      await refused('not_found', () => host.regenerate(MISSING, null));
      await refused('not_found', () => host.attach(MISSING, 0, () => {}));
      const { summary } = await host.createChat(plain);
      await host.deleteChat(summary.id);
      await refused('not_found', () => host.chat(summary.id));
      await refused('not_found', () => host.setDraft(summary.id, words('x')));
      await refused('not_found', () => host.send(summary.id, words(SHORT), 'end'));
    },
  },
  {
    name: 'an empty question is refused and stores nothing',
    async run(host) {
      const { summary } = await host.createChat(plain);
      await refused('bad_request', () => host.send(summary.id, words('  '), 'end'));
      same((await host.chat(summary.id)).messages, [], 'the messages');
      await host.deleteChat(summary.id);
    },
  },
  {
    name: 'an endpoint is listed with what its address means, and tried and changed only if there is one',
    window: 'settings',
    async run(host) {
      const far = { base_url: 'http://192.0.2.1/v1', leaves_computer: true, unencrypted: true };
      same(await host.endpointAddress(' http://192.0.2.1 '), far, 'an address that is typed');
      await refused('bad_request', () => host.endpointAddress('192.0.2.1:80'));
      for (const name of ['contract-near', 'contract-far']) await refused('model_not_found', () => host.testEndpoint(name));
      await refused('model_not_found', () => host.setEndpointKey('contract-near', 'sk', false));
      await refused('bad_request', () => host.addEndpoint('contract-far', 'http://192.0.2.1', 'sk', false));
      same(await host.addEndpoint('contract-near', 'https://localhost:9/v1/', null, false), true, 'whether the near one was added');
      same(await host.addEndpoint('contract-far', 'http://192.0.2.1', null, false), true, 'whether the far one was added');
      await refused('bad_request', () => host.addEndpoint('contract-far', 'http://192.0.2.2', null, false));
      const near = { base_url: 'https://localhost:9/v1', leaves_computer: false, unencrypted: false };
      await refused('model_not_found', () => host.setEndpointPersonal('contract-none', true));
      await host.setEndpointPersonal('contract-near', true);
      const listed = (await host.endpoints()).filter(({ name }) => name.startsWith('contract-'));
      same(listed, [{ name: 'contract-near', address: near, key: 'none', key_held_back: false, personal: true }, { name: 'contract-far', address: far, key: 'none', key_held_back: false, personal: false }], 'the list');
      await host.removeEndpoint('contract-near');
      await host.removeEndpoint('contract-far');
      same((await host.endpoints()).filter(({ name }) => name.startsWith('contract-')), [], 'the list afterwards');
    },
  },
  {
    name: 'nothing is brought, and nothing runs, that a person has not asked for',
    async run(host) {
      same(await host.takeOpenRequests(), [], 'what was brought');
      await refused('not_found', () => host.openedFile('1'));
      await refused('not_found', () => host.importOpened('../../history.sqlite'));
      same(await host.runningWork(), { answers: [], downloads: [] }, 'what runs');
      await host.quit('cancel');
    },
  },
  {
    name: 'an answer is told from its first event to its one end',
    async run(host) {
      const { summary } = await host.createChat(plain);
      const { question, answer, revision_before, revision } = await host.send(summary.id, words(SHORT), 'end');
      same(revision_before, summary.revision, 'the state of the chat that the turn was added to');
      same([question.role, question.state, answer.role, answer.state], ['user', 'complete', 'assistant', 'streaming'], 'the turn');
      same(answer.parent, question.id, 'what the answer answers');
      const events = await follow(host, answer.id);
      holds(rises(events), 'the numbers of the events rise');
      same(events.filter((event) => event.body.type === 'finished').length, 1, 'how often it ended');
      const ended = finished(events);
      same(ended.state, 'complete', 'how it ended');
      const deltas = events.flatMap(({ body }) => (body.type === 'delta' && body.content.kind === 'text' ? [body.content.text] : []));
      same(deltas.join(''), textOf(ended), 'the pieces, joined');
      const view = await host.chat(summary.id);
      same(view.messages.map((message) => message.id), [question.id, answer.id], 'the branch');
      same(view.summary.revision, revision + 1, 'the state of the chat after one change: the end of the answer');
      same((await host.earlierMessages(answer.id)).map((message) => message.id), [question.id], 'what comes before the answer');
      same(await host.earlierMessages(question.id), [], 'what comes before the first question');
      same(textOf(view.messages[1]), textOf(ended), 'what is stored');
      same(await isRunning(host, summary.id), false, 'whether it still runs');
      // Whoever comes late hears of the end only.
      const late = await follow(host, answer.id, events.at(-2)?.seq ?? 0);
      same(late.map((event) => event.body.type), ['finished'], 'what comes after all but the last');
      await host.deleteChat(summary.id);
    },
  },
  {
    name: 'a second listener hears the same, and from the middle only what is left',
    async run(host) {
      const { summary } = await host.createChat(plain);
      const { answer } = await host.send(summary.id, words(LONG), 'end');
      await some(host, answer.id, 6);
      const [all, rest] = await Promise.all([follow(host, answer.id), follow(host, answer.id, 3)]);
      holds(rises(all) && rises(rest), 'the numbers of the events rise');
      holds((rest[0]?.seq ?? 0) > 3, 'nothing up to number 3 is told again');
      same(textOf(finished(rest)), textOf(finished(all)), 'the two ends');
      await host.deleteChat(summary.id);
    },
  },
  {
    name: 'a chat answers one question at a time',
    async run(host) {
      const { summary } = await host.createChat(plain);
      const { answer } = await host.send(summary.id, words(LONG), 'end');
      same(await isRunning(host, summary.id), true, 'whether it is running');
      await refused('busy', () => host.send(summary.id, words(SHORT), 'end'));
      await refused('busy', () => host.deleteMessage(answer.id, 'turn'));
      await refused('bad_request', () => host.editAnswer(answer.id, 'One.'));
      await host.stop(answer.id);
      await follow(host, answer.id);
      await host.deleteChat(summary.id);
    },
  },
  {
    name: 'a chat keeps the model of its first question',
    async run(host) {
      const { summary, settings } = await host.createChat({ ...plain, model: null });
      same(settings.model, null, 'the model of an empty chat');
      const { answer } = await host.send(summary.id, words(SHORT), 'end');
      same((await host.chat(summary.id)).settings.model, answer.model, 'the model that it keeps');
      finished(await follow(host, answer.id));
      await host.deleteChat(summary.id);
    },
  },
  {
    name: 'a stopped answer keeps what came, and goes on',
    async run(host) {
      const { summary } = await host.createChat(plain);
      const { answer } = await host.send(summary.id, words(LONG), 'end');
      await some(host, answer.id, 6);
      await host.stop(answer.id);
      const stopped = finished(await follow(host, answer.id));
      same(stopped.state, 'stopped', 'how it ended');
      const view = await host.continueAnswer(answer.id);
      const going = view.messages.at(-1);
      same([going?.id, going?.state], [answer.id, 'streaming'], 'the answer that goes on');
      await host.stop(answer.id);
      const again = finished(await follow(host, answer.id));
      holds(textOf(again).startsWith(textOf(stopped)), 'what was there is still there');
      await host.deleteChat(summary.id);
    },
  },
  {
    name: 'another answer is a sibling, and both can be shown',
    async run(host) {
      const { summary } = await host.createChat(plain);
      const { answer: first } = await host.send(summary.id, words(SHORT), 'end');
      await follow(host, first.id);
      const second = (await host.regenerate(first.id, null)).messages.at(-1);
      holds(second !== undefined && second.id !== first.id, 'a new answer is shown');
      await follow(host, second?.id ?? '');
      const shown = (await host.showBranch(first.id)).messages.at(-1);
      same([shown?.id, shown?.siblings], [first.id, [first.id, second?.id]], 'the first answer and its siblings');
      await host.deleteChat(summary.id);
    },
  },
  {
    name: 'an image is kept once, counted, and stays in a draft',
    async run(host) {
      const before = await host.imageStorage();
      const bytes = Uint8Array.from(atob(IMAGE), (letter) => letter.charCodeAt(0));
      const added = await host.addImage(bytes, '');
      same([added.width, added.height, added.animated, added.media_type], [7, 5, false, 'image/png'], 'what is told of it');
      same(await host.addImage(bytes, ''), added, 'the same image again');
      same((await host.imageStorage()) - before, bytes.length, 'what it takes on the disk');
      await refused('model_not_found', () => host.imageTokens('nobody/nothing', 'normal', [[7, 5]]));
      const { animated: _, ...content } = added;
      const draft: Content[] = [{ kind: 'image', ...content, alt: '7 × 5' }, ...words('What is it?')];
      const { summary } = await host.createChat(plain);
      await host.setDraft(summary.id, draft);
      same((await host.chat(summary.id)).draft, draft, 'the draft');
      await host.deleteChat(summary.id);
    },
  },
  {
    name: 'there is one preview at a time, each at an address of its own',
    async run(host) {
      const first = await host.showPreview('<p>one</p>', false);
      holds((await host.showPreview('<p>one</p>', false)) !== first, 'another address for the same page');
      holds(await host.closePreview(), 'there was one');
      holds(!(await host.closePreview()), 'there is none any more');
      await refused('bad_request', () => host.showPreview('x'.repeat((4 << 20) + 1), true));
      holds(!(await host.closePreview()), 'a refused one is not held');
    },
  },
  {
    name: 'the text of a file is kept once, counted, read again, and stays in a draft',
    async run(host) {
      const bytes = new TextEncoder().encode('one\ntwo\nthree\n');
      const added = await host.addFile(bytes, 'Grüße 猫.md', '');
      same([added.name, added.media_type, added.bytes], ['Grüße 猫.md', 'text/markdown', 14], 'what is told of it');
      same(added.excerpt, { unit: 'lines', first: 1, last: 3, of: 3 }, 'its lines');
      same((await host.addFile(bytes, 'Grüße 猫.md', '')).attachment, added.attachment, 'the same file again');
      same(await host.fileText(added.attachment), { unit: 'lines', pieces: ['one\n', 'two\n', 'three\n'] }, 'its text');
      const count = async (content: Content[]): Promise<number> => (await host.contentTokens(PEBBLE, content)).tokens;
      const whole = await count([added]);
      holds(whole > 0 && whole < 100, 'it takes some tokens');
      holds((await count([{ ...added, excerpt: { unit: 'lines', first: 2, last: 2, of: 3 } }])) > 0, 'so does a part of it');
      await refused('model_not_found', () => host.contentTokens('nobody/nothing', [added]));
      const draft: Content[] = [added, ...words('What is this?')];
      const { summary } = await host.createChat(plain);
      await host.setDraft(summary.id, draft);
      same((await host.chat(summary.id)).draft, draft, 'the draft');
      await host.deleteChat(summary.id);
    },
  },
  {
    name: 'a project takes files along until they are taken out, and what it cannot take is refused',
    async run(host) {
      const { id } = await host.createProject('With files');
      const files = async (): Promise<Content[] | undefined> => (await host.projects()).find((project) => project.id === id)?.files;
      same(await files(), [], 'what a new project takes along');
      const added = async (text: string, name: string) => host.addFile(new TextEncoder().encode(text), name, '');
      const [one, two] = [await added('one\ntwo\n', 'one.txt'), await added('three\n', 'two.md')];
      await heard((listener) => host.onChatsChanged(listener), () => host.putProjectFile(id, one));
      await host.putProjectFile(id, two);
      const part: Content = { ...one, excerpt: { unit: 'lines', first: 2, last: 2, of: 2 } };
      await host.putProjectFile(id, part);
      same(await files(), [part, two], 'both files, of one a part');
      await host.removeProjectFile(id, one.attachment);
      same(await files(), [two], 'the one that is left');
      await refused('not_found', () => host.removeProjectFile(id, one.attachment));
      await host.putProjectFile(id, one);
      same(await files(), [one, two], 'the file that came back to its place');
      await refused('bad_request', () => host.putProjectFile(id, { kind: 'data', data: null }));
      await refused('not_found', () => host.putProjectFile(MISSING, one));
      await refused('not_found', () => host.putProjectFile(id, { ...one, attachment: '0'.repeat(64) }));
      await host.prefetchProject(id, plain);
      await host.deleteProject(id);
      await refused('not_found', () => host.putProjectFile(id, one));
      await refused('not_found', () => host.prefetchProject(id, plain));
    },
  },
  {
    name: 'what has no text is refused as a file',
    async run(host) {
      await refused('file_broken', () => host.addFile(new Uint8Array([0, 1, 2, 0]), 'a.bin', ''));
      await refused('file_broken', () => host.addFile(new Uint8Array(), 'a.txt', ''));
      await refused('not_found', () => host.fileText('0'.repeat(64)));
    },
  },
  {
    name: 'what is no image is refused as one',
    async run(host) {
      await refused('image_broken', () => host.addImage(new Uint8Array([1, 2, 3]), ''));
      await refused('image_broken', () => host.addImage(new Uint8Array(), ''));
    },
  },
  {
    name: 'the built-in model is here, and stays',
    window: 'models',
    async run(host) {
      const pebble = (await host.models()).find((model) => model.reference === PEBBLE);
      same([pebble?.built_in, pebble?.problem], [true, null], 'Pebble');
      same((await host.removalOf(PEBBLE)).refused?.reason, 'model_built_in', 'it says why it cannot be removed');
      await refused('bad_request', () => host.removeModel(PEBBLE));
    },
  },
  {
    name: 'a model that is not here is named as such',
    window: 'models',
    async run(host) {
      await refused('model_not_found', () => host.setDefaultModel('nobody/nothing'));
      await refused('model_not_found', () => host.removalOf('nobody/nothing'));
      await refused('model_not_found', () => host.revealModel('nobody/nothing'));
      await refused('model_not_found', () => host.chatWith('nobody/nothing'));
    },
  },
  {
    name: 'the default model is announced',
    window: 'models',
    async run(host) {
      const { new_chats_use_last_model } = await host.settings();
      await heard((listener) => host.onModelsChanged(listener), () => host.setDefaultModel(PEBBLE));
      same(await host.defaultModel(), PEBBLE, 'the default model');
      same((await host.settings()).new_chats_use_last_model, false, 'whether new chats use another');
      await host.changeSettings({ new_chats_use_last_model });
    },
  },
  {
    name: 'a setting is kept, told, and leaves the others alone',
    async run(host) {
      const before = await host.settings();
      let told: Settings | null = null;
      const subscribe = (listener: () => void): Promise<Unsubscribe> =>
        host.onSettingsChanged((settings) => {
          told = settings;
          listener();
        });
      await heard(subscribe, () => host.changeSettings({ thinking_budget: 256, thinking: 'low' }));
      const wanted = { ...before, thinking_budget: 256, thinking: 'low' };
      same(await host.settings(), wanted, 'the settings');
      same(told, wanted, 'what was told');
      await refused('model_not_found', () => host.changeSettings({ default_model: 'nobody/nothing' }));
      const unknown: object = { colour: 'green' };
      await refused('bad_request', () => host.changeSettings(unknown));
      same(await host.changeSettings({ thinking_budget: before.thinking_budget, thinking: before.thinking }), before, 'the settings, as before');
    },
  },
  {
    name: 'the server is off until it is switched on, remembers its port, and is set by its own calls alone',
    window: 'settings',
    async run(host) {
      const { settings: before, state } = await host.serverStatus();
      same([before.on, state.kind, before.key_made_at], [false, 'off', null], 'the server at first');
      await refused('bad_request', () => host.setServer(true, 0, false));
      await refused('bad_request', () => host.changeSettings({ server: { ...before, on: true } }));
      const on = await host.setServer(true, 18231, false);
      same([on.settings.on, on.settings.port, on.address], [true, 18231, 'http://127.0.0.1:18231'], 'what was set');
      same((await host.settings()).server, on.settings, 'the setting');
      // A computer without a keychain makes no key.
      same((await host.serverKey()) === null, on.settings.key_made_at === null, 'a key that is made is there');
      if (on.settings.key_made_at !== null) await host.forgetServerKey();
      same((await host.setServer(true, 18231, true)).state.kind, 'key_needed', 'the server for other computers without a key');
      same(await host.serverKey(), null, 'its key');
      same([before.collections, (await host.allowServerCollections(['notes'])).settings.collections], [[], ['notes']], 'the documents that programs may search');
      same((await host.setServer(true, 18231, false)).settings.collections, ['notes'], 'the documents, after another change');
      await host.allowServerCollections([]);
      const off = await host.setServer(false, before.port, false);
      same([off.state.kind, off.clients.length, off.settings], ['off', 0, before], 'the server, as before');
    },
  },
  {
    name: 'a set-up names the address and the model',
    window: 'settings',
    async run(host) {
      holds((await host.servedModels()).includes(PEBBLE), 'the built-in model is served');
      const setups = await host.clientSetups(PEBBLE, true);
      const { address } = await host.serverStatus();
      holds(setups.length > 8 && setups.every(({ text }) => text.includes(address) && text.includes(PEBBLE)), 'each has both');
    },
  },
  {
    name: 'the chat window remembers',
    async run(host) {
      const before = await host.chatWindowState();
      const state = { open_chat: MISSING, new_draft: words('half a quest'), folded_projects: ['project-1'] };
      await host.setChatWindowState(state);
      same(await host.chatWindowState(), state, 'what it remembers');
      await host.setChatWindowState(before);
    },
  },
  {
    name: 'a folder is listed once it is added, and no longer once it is forgotten',
    window: 'models',
    async run(host) {
      const paths = async (): Promise<string[]> => (await host.modelFolders()).map((folder) => folder.path);
      const folder = (await host.models()).find(({ reference }) => reference === PEBBLE)?.path ?? '';
      await heard((listener) => host.onModelsChanged(listener), () => host.addModelFolder(folder));
      holds((await paths()).includes(folder), 'it is listed');
      holds((await host.settings()).model_folders.includes(folder), 'it is a setting');
      await host.forgetModelFolder(folder);
      holds(!(await paths()).includes(folder), 'it is forgotten');
    },
  },
  {
    name: 'offline, nothing is asked of the hub',
    window: 'models',
    async run(host) {
      await heard((listener) => host.onNetworkChanged(listener), () => host.setOffline(true));
      await refused('offline', () => host.describeModel('owner/name'));
      await refused('offline', () => host.modelCard('owner/name'));
      same((await host.netSettings()).offline, true, 'the switch, asked again');
      same((await host.setOffline(false)).offline, false, 'the switch, back again');
    },
  },
  {
    name: 'downloads are told at once, and one that is not there cannot be paused',
    window: 'models',
    async run(host) {
      const told = await within('the downloads', new Promise<unknown[]>((resolve) => void host.watchDownloads(resolve)));
      same(told, [], 'the downloads');
      await refused('model_not_found', () => host.pauseDownload('owner/name'));
      await refused('model_not_found', () => host.resumeDownload('owner/name'));
    },
  },
  {
    name: 'what slows the computer down is told by its name, if anything does',
    async run(host) {
      const slowdown = await host.slowedBy();
      holds(slowdown === null || slowdown === 'low_power' || slowdown === 'heat', 'a name that windows know');
      (await host.onMemoryReleased(() => {}))();
      (await host.onEngineChanged(() => {}))();
    },
  },
  {
    name: 'memory is told in bytes',
    async run(host) {
      const { total, free } = await host.memory();
      holds(total > 1 << 28 && free > 0 && free <= total, `${free} of ${total} bytes are free`);
      holds((await host.engineStatus()).memory.peak >= 0, 'the engine tells what it takes');
    },
  },
  {
    name: 'only web and mail addresses are opened',
    async run(host) {
      await refused('bad_request', () => host.openLink('file:///etc/passwd'));
      await refused('bad_request', () => host.openLink('javascript:alert(1)'));
    },
  },
  ...branchCases,
  ...documentCases,
  ...noteCases,
  ...libraryCases,
  ...settingsCases,
  ...toolCases,
];
