// Vercel's AI SDK with three providers: chat completions, responses and messages.
import { ABOUT, COSTLY_MODES, FIVE, MODES, RESULT, SCHEMA, SUM, SUM_SCHEMA, TOLD, WEATHER, assert, assertSum, cells, embedder, need, url } from './cells.mjs';

const { APICallError, Output, embed, embedMany, generateText, jsonSchema, stepCountIs, streamText, tool } = need('ai');
const { createOpenAICompatible } = need('@ai-sdk/openai-compatible');
const { createOpenAI } = need('@ai-sdk/openai');
const { createAnthropic } = need('@ai-sdk/anthropic');

const providers = {
	'openai-compatible': {
		provider: createOpenAICompatible({ name: 'ponder', baseURL: `${url}/v1`, includeUsage: true, supportsStructuredOutputs: true }),
		thinking: { ponder: { reasoningEffort: 'high' } },
	},
	openai: {
		provider: createOpenAI({ baseURL: `${url}/v1`, apiKey: 'local' }),
		thinking: { openai: { reasoningEffort: 'high', reasoningSummary: 'auto', forceReasoning: true } },
	},
	anthropic: {
		provider: createAnthropic({ baseURL: `${url}/v1`, apiKey: 'local' }),
		// It would ask for a call by a model that it does not know.
		structured: { anthropic: { structuredOutputMode: 'outputFormat' } },
		thinking: { anthropic: { thinking: { type: 'enabled', budgetTokens: 1024 } } },
	},
};

/** An answer, whole or streamed, in one form. An error of a stream is raised, which the SDK would only tell. */
async function answer(stream, options) {
	if (!stream) return generateText(options);
	let failure;
	const result = streamText({ ...options, onError: ({ error }) => (failure = error) });
	try {
		await result.consumeStream();
		const { text, reasoningText, finishReason, totalUsage: usage } = result;
		return Object.fromEntries(
			await Promise.all(Object.entries({ text, reasoningText, finishReason, usage, ...(options.output && { output: result.output }) }).map(async ([name, value]) => [name, await value])),
		);
	} catch (error) {
		throw failure ?? error;
	}
}

/** Vectors of one text and of several; the same text has the same one. */
async function embeddings(model) {
	const { embeddings, usage } = await embedMany({ model, values: ['w7 w8', 'w9'], maxRetries: 0 });
	const { embedding } = await embed({ model, value: 'w9', maxRetries: 0 });
	assert.ok(embeddings.length === 2 && usage.tokens > 2);
	assert.ok(embedding.every((number, at) => Math.abs(number - embeddings[1][at]) < 1e-5) && embedding.length > 1);
}

for (const [name, { provider, thinking, structured }] of Object.entries(providers)) {
	const base = { model: provider('pebble'), temperature: 0, maxRetries: 0, maxOutputTokens: 400 };
	await cells(`AI SDK, ${name}`, {
		async question() {
			for (const stream of MODES) {
				const told = await answer(stream, { ...base, prompt: SUM });
				assert.ok(told.text.includes(FIVE), told.text);
				assert.equal(told.finishReason, 'stop');
				assert.ok(told.usage.inputTokens > 0 && told.usage.outputTokens > 0, JSON.stringify(told.usage));
				assert.ok(!told.reasoningText);
			}
		},
		async tools() {
			for (const stream of COSTLY_MODES) {
				const asked = [];
				const get_weather = tool({
					description: ABOUT,
					inputSchema: jsonSchema(SCHEMA),
					execute: async (given) => asked.push(given) && JSON.parse(RESULT),
				});
				const told = await answer(stream, { ...base, prompt: WEATHER, tools: { get_weather }, stopWhen: stepCountIs(3) });
				assert.deepEqual(asked, [{ city: 'Oslo' }]);
				assert.ok(told.text.includes(TOLD), told.text);
			}
		},
		async thinking() {
			for (const stream of COSTLY_MODES) {
				const told = await answer(stream, { ...base, prompt: SUM, providerOptions: thinking });
				assert.ok(told.reasoningText, JSON.stringify(told));
				assert.ok(told.text.includes(FIVE) && !told.text.includes(told.reasoningText));
			}
		},
		async structured() {
			const output = Output.object({ schema: SUM_SCHEMA });
			for (const stream of COSTLY_MODES) assertSum((await answer(stream, { ...base, prompt: SUM, output, providerOptions: structured })).output);
		},
		...(embedder && name !== 'anthropic' && { embeddings: () => embeddings(provider.embeddingModel(embedder)) }),
		async error() {
			for (const stream of MODES) {
				for (const [options, status] of [
					[{ ...base, prompt: SUM, model: provider('other') }, 404],
					[{ ...base, prompt: 'one two '.repeat(6000) }, 400],
				]) {
					let raised;
					await answer(stream, options).catch((error) => (raised = error));
					assert.ok(APICallError.isInstance(raised), `${raised}`);
					assert.equal(raised.statusCode, status);
					assert.equal(raised.isRetryable, false);
				}
			}
		},
	});
}
