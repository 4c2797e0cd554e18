import { beforeEach, describe, expect, it, vi } from 'vitest';

import type { AnswerEvent } from '../../bindings/AnswerEvent';
import type { Content } from '../../bindings/Content';
import { textOf } from '../../shared/messageParts';
import type { HostError } from '../../host';
import { fakeHost, type FakeHost } from '../../host/fake';
import { scriptFor } from '../../host/fake/text';
import { DEFAULT_CHAT_SETTINGS } from '../../bindings/constants';
import { LiveAnswer, type FollowOutcome } from './liveAnswer.svelte';
import { Chats } from '../../stores/chats.svelte';
import { Conversation } from './conversation.svelte';
import type { LocalPrefs } from '../../shared/localPrefs';
import { Toasts } from '../../design/toasts.svelte';
import { Undo } from '../../stores/undo.svelte';

const STORY = scriptFor('story', true);
const BROKEN: HostError = { code: 'storage', message: 'The history could not be written.' };

/** Frames that come when the test says so. */
class Frames {
  #waiting: (() => void)[] = [];
  readonly request = (run: () => void): void => void this.#waiting.push(run);
  draw(): void {
    const runs = this.#waiting;
    this.#waiting = [];
    for (const run of runs) run();
  }
}

class Memory implements LocalPrefs {
  openChat = '';
  newDraft: readonly Content[] = [];
  foldedProjects: readonly string[] = [];
}

let host: FakeHost;
let frames: Frames;
let memory: Memory;
let toasts: Toasts;

/** A page: the state of a window until it is closed or reloaded. */
function page(): Conversation {
  return new Conversation(host, toasts, new Undo(toasts), frames.request, memory);
}

async function pass(milliseconds: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(milliseconds);
  frames.draw();
  await vi.advanceTimersByTimeAsync(0);
}

function shown(conversation: Conversation): { thinking: string; text: string } {
  const stored = conversation.lastAnswer;
  const message = (stored && conversation.live.get(stored.id)?.message) ?? stored;
  const of = (kind: 'thinking' | 'text'): string =>
    message?.parts.map((part) => (part.kind === kind ? part.text : '')).join('') ?? '';
  return { thinking: of('thinking'), text: of('text') };
}

const told = (channel: string): string =>
  STORY.filter((part) => part.channel === channel)
    .map((part) => part.text)
    .join('');

beforeEach(() => {
  vi.useFakeTimers();
  host = fakeHost(5);
  frames = new Frames();
  memory = new Memory();
  toasts = new Toasts();
});

describe('an answer', () => {
  it('arrives piece by piece, its thought apart', async () => {
    const conversation = page();
    await conversation.send('Tell me a long story');
    const lengths: number[] = [];
    for (let i = 0; i < 40; i++) {
      await pass(50);
      lengths.push(shown(conversation).text.length);
    }
    expect(new Set(lengths).size).toBeGreaterThan(20);
    await pass(60_000);
    expect(shown(conversation)).toEqual({ thinking: told('thinking'), text: told('text') });
    expect(conversation.lastAnswer?.state).toBe('complete');
    expect(conversation.running).toBeNull();
    expect(conversation.announcement).toBe(told('text'));
  });

  it('is applied once per frame, however many events came', async () => {
    const conversation = page();
    await conversation.send('Tell me a long story');
    await pass(200);
    const before = conversation.running?.message;
    await vi.advanceTimersByTimeAsync(500);
    expect(conversation.running?.message).toBe(before);
    frames.draw();
    expect(conversation.running?.message).not.toBe(before);
  });

  it('has no gap and no repeat after the page was reloaded', async () => {
    await page().send('Tell me a long story');
    await pass(900);
    const reloaded = page();
    await reloaded.reopen();
    await pass(0);
    const middle = shown(reloaded).text;
    expect(middle).not.toBe('');
    expect(told('text').startsWith(middle)).toBe(true);
    await pass(60_000);
    expect(shown(reloaded)).toEqual({ thinking: told('thinking'), text: told('text') });
  });

  it('continues where its stream broke off', async () => {
    host.detachAfter = 40;
    const conversation = page();
    await conversation.send('Tell me a long story');
    for (let i = 0; i < 200; i++) await pass(50);
    await pass(60_000);
    expect(shown(conversation)).toEqual({ thinking: told('thinking'), text: told('text') });
    expect(toasts.shown).toEqual([]);
  });

  it('of another chat goes on while this one is looked at', async () => {
    const conversation = page();
    await conversation.send('Tell me a long story');
    const story = conversation.id;
    await pass(300);
    conversation.openNew();
    expect(conversation.running).toBeNull();
    expect(story && conversation.live.isRunning(story)).toBe(true);
    await pass(400);
    await conversation.open(story ?? '');
    await pass(60_000);
    expect(shown(conversation).text).toBe(told('text'));
  });

  it('keeps what came when it is stopped', async () => {
    const conversation = page();
    await conversation.send('Tell me a long story');
    await pass(900);
    const before = shown(conversation).text;
    await conversation.stop();
    await pass(100);
    expect(conversation.lastAnswer?.state).toBe('stopped');
    expect(shown(conversation).text.startsWith(before)).toBe(true);
    expect(before).not.toBe('');
  });

  it('is not continued when it ends if the stop for that was refused', async () => {
    const { answer } = await host.send(host.addChat('', 0).summary.id, [{ kind: 'text', text: 'x' }], 'end');
    const live = new LiveAnswer(answer, host, frames.request, () => {});
    host.stop = async () => {
      throw BROKEN;
    };
    await expect(live.stop(true)).rejects.toEqual(BROKEN);
    expect([live.continues, live.stopping]).toEqual([false, false]);
  });

  it('drops an event that it has seen', async () => {
    const { answer } = await host.send(host.addChat('', 0).summary.id, [{ kind: 'text', text: 'x' }], 'end');
    let emit = (_: AnswerEvent): void => {};
    host.attach = async (_id, _from, onEvent) => void (emit = onEvent);
    let outcome: FollowOutcome | null = null;
    const live = new LiveAnswer(answer, host, frames.request, (now) => (outcome = now));
    await live.follow();
    const delta = (seq: number, text: string): void =>
      emit({ message: answer.id, seq, body: { type: 'delta', content: { kind: 'text', text }, at: 0 } });
    delta(3, 'one ');
    delta(3, 'one ');
    delta(2, 'zero ');
    delta(4, 'two');
    frames.draw();
    expect(textOf(live.message.parts)).toBe('one two');
    expect(outcome).toBeNull();
  });

  it('that another process writes is followed as if it were written here', async () => {
    const chat = host.addChat('A chat', 1);
    const conversation = page();
    await conversation.open(chat.summary.id);
    const sync = async (): Promise<void> =>
      conversation.sync((await host.chats()).find(({ id }) => id === chat.summary.id) ?? null);
    const read = vi.spyOn(host, 'chat');
    await sync();
    expect(read).not.toHaveBeenCalled();

    await host.send(chat.summary.id, [{ kind: 'text', text: 'Tell me a long story' }], 'end');
    await sync();
    expect(conversation.messages.map((message) => message.role)).toEqual(['user', 'assistant']);
    await pass(900);
    const early = shown(conversation).text;
    expect(early).not.toBe('');
    await sync();
    await pass(900);
    expect(shown(conversation).text.length).toBeGreaterThan(early.length);
    expect(conversation.running).not.toBeNull();
    expect(read).toHaveBeenCalledOnce();
    await pass(60_000);
    await sync();
    expect(shown(conversation).text).toBe(told('text'));
    expect(conversation.lastAnswer?.state).toBe('complete');
  });
});

describe('a question', () => {
  it('of another process is shown in a chat that began in this window', async () => {
    const conversation = page();
    await conversation.send('Hello');
    await pass(60_000);
    const id = conversation.id ?? '';
    await host.send(id, [{ kind: 'text', text: 'From elsewhere' }], 'end');
    await conversation.sync((await host.chats()).find((chat) => chat.id === id) ?? null);
    expect(conversation.messages.map((message) => message.role)).toEqual(['user', 'assistant', 'user', 'assistant']);
    await pass(60_000);
  });

  it('comes back to the composer when it cannot be sent', async () => {
    host.refuse = { call: 'send', error: BROKEN };
    const conversation = page();
    await conversation.send('Something long\n  that I typed');
    expect(conversation.draft.text).toBe('Something long\n  that I typed');
    expect(conversation.messages).toEqual([]);
    expect(toasts.shown.map((toast) => toast.title)).toEqual(['Couldn’t read or save data']);
  });

  it('waits for the next new chat if another chat was opened before it failed', async () => {
    const { summary } = await host.createChat(DEFAULT_CHAT_SETTINGS);
    host.refuse = { call: 'createChat', error: BROKEN };
    const conversation = page();
    const sending = conversation.send('Something long');
    conversation.id = summary.id;
    await sending;
    conversation.openNew();
    expect(conversation.draft.text).toBe('Something long');
  });

  it('makes the chat when it is sent, with the settings chosen before', async () => {
    const conversation = page();
    await conversation.changeSettings({ thinking: 'off' });
    expect(await host.chats()).toHaveLength(0);
    await conversation.send('What is 347 + 589?');
    expect((await host.chat(conversation.id ?? '')).settings.thinking).toBe('off');
    await pass(5000);
    expect(shown(conversation)).toEqual({ thinking: '', text: '347 + 589 = **936**' });
  });

  it('is asked under the settings that were chosen just before, however long they take to be written', async () => {
    const conversation = page();
    await conversation.send('What is 347 + 589?');
    await pass(5000);
    const chat = conversation.id ?? '';
    const write = host.setChatSettings.bind(host);
    const delays = [300, 100];
    host.setChatSettings = async (id, settings) => {
      await new Promise((resolve) => setTimeout(resolve, delays.shift()));
      return write(id, settings);
    };
    const asked: unknown[] = [];
    const send = host.send.bind(host);
    host.send = async (...question) => {
      asked.push((await host.chat(chat)).settings);
      return send(...question);
    };
    void conversation.changeSettings({ thinking: 'on' });
    void conversation.changeSettings({ thinking: 'off', thinking_budget: 7 });
    void conversation.send('What is 2 + 3?');
    await conversation.open(chat);
    expect(conversation.settings.thinking).toBe('off');
    await pass(1000);
    expect(asked).toMatchObject([{ thinking: 'off', thinking_budget: 7 }]);
  });

  it('is kept if the settings that were chosen just before are refused', async () => {
    const conversation = page();
    await conversation.send('What is 347 + 589?');
    await pass(5000);
    host.setChatSettings = async () => {
      await new Promise((resolve) => setTimeout(resolve, 100));
      throw BROKEN;
    };
    void conversation.changeSettings({ thinking: 'off' });
    void conversation.send('What is 2 + 3?');
    await pass(1000);
    expect(conversation.messages).toHaveLength(2);
    expect(conversation.draft.text).toBe('What is 2 + 3?');
    expect(conversation.settings.thinking).not.toBe('off');
    expect(toasts.shown.map((toast) => toast.title)).toEqual(['Couldn’t read or save data']);
  });

  it('has the settings that the host took last, if those after them are refused', async () => {
    const conversation = page();
    await conversation.send('What is 347 + 589?');
    await pass(5000);
    const write = host.setChatSettings.bind(host);
    host.setChatSettings = async (id, settings) => {
      if (settings.thinking_budget === 7) throw BROKEN;
      return write(id, settings);
    };
    const changes = [{ thinking: 'off' }, { thinking_budget: 7 }, { max_tokens: 9 }] as const;
    await Promise.all(changes.map((change) => conversation.changeSettings(change)));
    expect(conversation.settings).toMatchObject({ thinking: 'off', thinking_budget: null });
    expect(conversation.settings).toEqual((await host.chat(conversation.id ?? '')).settings);
  });

  it('waits while an answer is being written', async () => {
    const conversation = page();
    await conversation.send('Tell me a long story');
    await conversation.send('Another');
    expect(conversation.messages).toHaveLength(2);
  });

  it('is answered again beside the first answer, and both can be looked at', async () => {
    const conversation = page();
    await conversation.send('What is 347 + 589?');
    await pass(5000);
    const first = conversation.lastAnswer?.id ?? '';
    await conversation.regenerate(first);
    await pass(5000);
    const second = conversation.lastAnswer;
    expect(second?.siblings).toEqual([first, second?.id]);
    await conversation.showBranch(first);
    expect(conversation.lastAnswer?.id).toBe(first);
    expect(conversation.lastAnswer?.siblings).toHaveLength(2);
  });
});

describe('a draft', () => {
  it('stays with its chat', async () => {
    const one = host.addChat('One', 1);
    const two = host.addChat('Two', 2);
    const conversation = page();
    await conversation.open(one.summary.id);
    conversation.draft.write('half a thou');
    await conversation.open(two.summary.id);
    expect(conversation.draft.text).toBe('');
    await conversation.open(one.summary.id);
    expect(conversation.draft.text).toBe('half a thou');
  });

  it('is stored when the typing pauses, not at each key', async () => {
    const chat = host.addChat('One', 1);
    const stored = vi.spyOn(host, 'setDraft');
    const conversation = page();
    await conversation.open(chat.summary.id);
    for (const text of ['a', 'ab', 'abc']) {
      conversation.draft.write(text);
      await pass(100);
    }
    await pass(300);
    expect(stored.mock.calls).toEqual([[chat.summary.id, [{ kind: 'text', text: 'abc' }]]]);
  });

  it('is stored after two seconds of typing without a pause', async () => {
    const chat = host.addChat('One', 1);
    const stored = vi.spyOn(host, 'setDraft');
    const conversation = page();
    await conversation.open(chat.summary.id);
    for (let key = 1; key <= 21; key++) {
      conversation.draft.write('a'.repeat(key));
      await pass(100);
    }
    expect(stored).toHaveBeenCalledTimes(1);
  });

  it('of a new chat survives a restart', async () => {
    const conversation = page();
    conversation.draft.write('not yet sent');
    conversation.flushDraft();
    const restarted = page();
    await restarted.reopen();
    expect(restarted.draft.text).toBe('not yet sent');
  });
});

describe('chats', () => {
  it('come back from the trash', async () => {
    const chat = host.addChat('Names for a boat', 1);
    const chats = new Chats(host, toasts);
    await chats.open();
    const restored = vi.fn();
    await chats.remove(chat.summary.id, restored);
    await pass(0);
    expect(chats.list).toEqual([]);
    expect(toasts.shown[0]?.text).toBe('“Names for a boat” was deleted.');
    toasts.shown[0]?.action?.run();
    await pass(0);
    expect(chats.list.map((other) => other.title)).toEqual(['Names for a boat']);
    expect(restored).toHaveBeenCalledOnce();
  });

  it('keep their name when a new one is refused', async () => {
    const chat = host.addChat('Old name', 1);
    host.refuse = { call: 'renameChat', error: BROKEN };
    const chats = new Chats(host, toasts);
    await chats.open();
    await chats.rename(chat.summary.id, 'New name');
    expect(chats.list[0]?.title).toBe('Old name');
    expect(toasts.shown[0]?.details).toContain('"code": "storage"');
  });

  it('that are gone do not stand in the way of the start', async () => {
    memory.openChat = 'chat-99';
    const conversation = page();
    await conversation.reopen();
    expect(conversation.id).toBeNull();
    expect(toasts.shown).toEqual([]);
  });
});
