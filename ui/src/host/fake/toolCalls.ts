/** The fake host's calls of tools. None runs by itself: tests and examples let them wait, run and end. */

import type { CallApproval } from '../../bindings/CallApproval';
import type { CallStatus } from '../../bindings/CallStatus';
import type { RunningCall } from '../../bindings/RunningCall';
import type { StoredMessage } from '../../bindings/StoredMessage';
import type { ToolsChange } from '../../bindings/ToolsChange';
import type { WaitingCall } from '../../bindings/WaitingCall';
import type { Platform } from '../types';
import { listen, refusal } from './shared';
import { addMessage, changed, chatOf, messageOf, refuse, replace, shown, type Store } from './store';
import { textPart } from './tree';
import type { toolServerControls } from './toolServers';

export const toolCallControls = () => ({
  /** The calls that wait for a person, oldest first. */
  waiting: [] as readonly WaitingCall[],
  /** The consents that were given. */
  approvals: [] as CallApproval[],
  /** The refusals, each with its word for the model. */
  refusals: [] as { call: string; hash: string; word: string }[],
  /** The number of times that the window of calls was brought to the front. */
  consentShown: 0,
  /** The answers whose calls were asked about again. */
  ranAgain: [] as string[],
  waitingListeners: new Set<() => void>(),
  /** The calls that run, as far as their progress is known. */
  runningCallList: [] as readonly RunningCall[],
  runningListeners: new Set<() => void>(),
  /** How the tools of chats differ from those that their models are told of. */
  toolsChanges: new Map<string, ToolsChange>(),
});

type Controls = Store & ReturnType<typeof toolCallControls> & ReturnType<typeof toolServerControls>;

export function toolCalls(host: Controls) {
  const decide = (answer: string, call: string, hash: string): void => {
    const waiting = host.waiting.find((other) => other.answer === answer && other.call === call);
    if (!waiting) throw refusal('not_found', 'this call does not wait any more');
    if (waiting.hash !== hash) throw refusal('bad_request', 'another call was shown');
    setWaiting(host.waiting.filter((other) => other !== waiting));
  };
  const setWaiting = (waiting: readonly WaitingCall[]): void => {
    host.waiting = waiting;
    for (const listener of host.waitingListeners) queueMicrotask(listener);
  };
  const setStatus = (answer: string, status: Partial<CallStatus> & Pick<CallStatus, 'call'>): void => {
    const { chat, message } = messageOf(host, answer);
    const calls = message.calls.map((other) => (other.call === status.call ? { ...other, ...status } : other));
    replace(chat, { ...message, calls });
    changed(host, chat);
  };
  const commands = {
    async chatTools() {
      return { servers: [...host.toolServers], grants: [], web_search: null };
    },
    async toolsChange(id) {
      return host.toolsChanges.get(chatOf(host, id).summary.id) ?? null;
    },
    async useNewTools(id) {
      refuse(host, 'useNewTools');
      host.toolsChanges.delete(chatOf(host, id).summary.id);
    },
    async waitingCalls() {
      refuse(host, 'waitingCalls');
      return [...host.waiting];
    },
    async approveCall(approval) {
      refuse(host, 'approveCall');
      decide(approval.answer, approval.call, approval.hash);
      host.approvals.push(approval);
    },
    async refuseCall(answer, call, hash, word) {
      refuse(host, 'refuseCall');
      decide(answer, call, hash);
      host.refusals.push({ call, hash, word });
    },
    async runningCalls() {
      return [...host.runningCallList];
    },
    async showConsent() {
      refuse(host, 'showConsent');
      host.consentShown += 1;
    },
    async runCallsAgain(answer) {
      refuse(host, 'runCallsAgain');
      host.ranAgain.push(answer);
      const { chat, message } = messageOf(host, answer);
      for (const { call, state, attempt } of message.calls)
        if (state === 'not_run' || state === 'may_have_run')
          setStatus(answer, { call, state: 'asked', attempt: attempt + 1, ended_at: null });
      return shown(chat);
    },
    async goOnWithoutCalls(answer) {
      refuse(host, 'goOnWithoutCalls');
      const { chat, message } = messageOf(host, answer);
      let parent = message.id;
      for (const part of message.parts)
        if (part.kind === 'tool_call') {
          const row = { role: 'tool', parent, state: 'stopped', tool_call_id: part.call.id } as const;
          parent = addMessage(host, chat, { ...row, parts: [textPart('The tool was not run.')] }).id;
        }
      const next = { role: 'assistant', parent, state: 'complete', finish_reason: 'stop' } as const;
      addMessage(host, chat, { ...next, parts: [textPart('Without it, then.')] });
      changed(host, chat);
      return shown(chat);
    },
    onWaitingCallsChanged: (listener) => listen(host.waitingListeners, listener),
    onRunningCallsChanged: (listener) => listen(host.runningListeners, listener),
  } satisfies Partial<Platform>;
  return {
    ...commands,
    /** Lets these calls wait instead of those that do. */
    setWaiting,
    /** Lets calls be as far as this. */
    setRunning(running: readonly RunningCall[]): void {
      host.runningCallList = running;
      for (const listener of host.runningListeners) queueMicrotask(listener);
    },
    /** Changes the state of a call of an answer, as the host does while it runs. */
    setStatus,
    /** Stores the result of a call below the last message of a chat. */
    addResult(answer: string, tool_call_id: string, row: Partial<StoredMessage>): void {
      const { chat } = messageOf(host, answer);
      addMessage(host, chat, { role: 'tool', parent: chat.leaf, state: 'complete', tool_call_id, ...row });
      changed(host, chat);
    },
  };
}
