/** The models that a chat can choose from, in groups: those of this computer, then those of each endpoint. */

import type { EndpointModels } from '../../../bindings/EndpointModels';
import type { EngineStatus } from '../../../bindings/EngineStatus';
import type { LocalModel } from '../../../bindings/LocalModel';
import { bytes } from '../../../format/format';
import { quantizationTag } from '../../../format/modelText';
import { t } from '../../../locales';
import { errorText } from '../../../locales/host';
import { folded } from '../../../shared/findText';

export interface ModelChoice {
  reference: string;
  name: string;
  note: string;
  tags: string[];
  loaded: boolean;
  /** Why it cannot be chosen. */
  problem?: string;
}

export interface ModelGroup {
  name: string;
  /** True if its models are on another computer. */
  remote: boolean;
  /** The receiver of messages to its models; empty on this computer. */
  note: string;
  choices: ModelChoice[];
}

export function modelGroups(
  models: readonly LocalModel[],
  remote: readonly EndpointModels[],
  status: EngineStatus | null,
  mac: boolean,
): ModelGroup[] {
  const loaded = new Set(status?.loaded.map(({ reference }) => reference));
  const local: ModelGroup = {
    name: t(mac ? 'models.tab.localMac' : 'models.tab.local'),
    remote: false,
    note: '',
    // Embedding models write nothing.
    choices: models
      .filter(({ kind }) => kind === 'chat')
      .map((model) => localChoice(model, models, loaded.has(model.reference))),
  };
  return [local, ...remote.map(remoteGroup)];
}

function localChoice(model: LocalModel, models: readonly LocalModel[], loaded: boolean): ModelChoice {
  const base = models.find(({ reference }) => reference === model.adapter_of)?.name;
  const adapter = base !== undefined && t('local.adapterFor', { model: base });
  const thinks = model.thinking !== null && model.thinking.kind !== 'never';
  return {
    reference: model.reference,
    name: model.name,
    note: [adapter || quantizationTag(model.quantization), bytes(model.bytes)].filter(Boolean).join(' · '),
    tags: [model.supports_vision && t('modelTag.vision'), thinks && t('modelTag.thinking')].filter((tag) => tag !== false),
    loaded,
    ...(model.problem ? { problem: errorText(model.problem) } : {}),
  };
}

/** The models of an endpoint, or why it has none. What they can do is not known. */
function remoteGroup({ endpoint, leaves_computer, models, problem }: EndpointModels): ModelGroup {
  const plain = { note: '', tags: [], loaded: false };
  const failed = problem && {
    reference: `endpoint:${endpoint.name}`,
    name: endpoint.name,
    problem: errorText(problem),
    ...plain,
  };
  return {
    name: endpoint.name,
    remote: leaves_computer,
    note: t(leaves_computer ? 'model.leavesComputer' : 'model.servedHere', { endpoint: endpoint.name }),
    choices: failed ? [failed] : models.map(({ reference, name }) => ({ reference, name, ...plain })),
  };
}

/** The groups with the models whose names contain all of these words; without words, all of them. */
export function matching(groups: readonly ModelGroup[], query: string): ModelGroup[] {
  const words = folded(query).split(/\s+/).filter(Boolean);
  const matches = (text: string): boolean => words.every((word) => folded(text).includes(word));
  return groups
    .map((group) => ({ ...group, choices: group.choices.filter(({ name }) => matches(`${name} ${group.name}`)) }))
    .filter(({ choices }) => choices.length > 0);
}
