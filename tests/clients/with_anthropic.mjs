// The official SDK of Anthropic for Node: messages, whole and through its stream helper and tool runner.
import { ABOUT, COSTLY_MODES, FIVE, MODES, RESULT, SCHEMA, SUM, SUM_SCHEMA, TOLD, WEATHER, assert, assertSum, cells, need, raises, url } from './cells.mjs';

const { default: Anthropic, NotFoundError, BadRequestError } = need('@anthropic-ai/sdk');
const { zodOutputFormat } = need('@anthropic-ai/sdk/helpers/zod');
const client = new Anthropic({ baseURL: url, apiKey: 'local', maxRetries: 0 });
const ask = (content, more) => ({ model: 'pebble', max_tokens: 400, temperature: 0, messages: [{ role: 'user', content }], ...more });
const finish = (stream, body) => (stream ? client.messages.stream(body).finalMessage() : client.messages.create(body));
const textOf = (message) => message.content.filter((block) => block.type === 'text').map((block) => block.text).join('');

await cells('anthropic (npm)', {
	async question() {
		const texts = [];
		for (const stream of MODES) {
			const told = await finish(stream, ask(SUM));
			assert.ok(textOf(told).includes(FIVE) && told.stop_reason === 'end_turn');
			assert.ok(told.usage.input_tokens + told.usage.cache_read_input_tokens > 0 && told.usage.output_tokens > 0);
			texts.push(textOf(told));
		}
		assert.equal(texts[0], texts[1]);
		const counted = await client.messages.countTokens({ model: 'pebble', messages: [{ role: 'user', content: SUM }] });
		assert.ok(counted.input_tokens > 0);
	},
	async tools() {
		const tools = [{ name: 'get_weather', description: ABOUT, input_schema: SCHEMA }];
		for (const stream of COSTLY_MODES) {
			const called = await finish(stream, ask(WEATHER, { tools }));
			const [call] = called.content.filter((block) => block.type === 'tool_use');
			assert.deepEqual([call.name, call.input, called.stop_reason], ['get_weather', { city: 'Oslo' }, 'tool_use']);
			const result = { type: 'tool_result', tool_use_id: call.id, content: RESULT };
			const messages = [
				{ role: 'user', content: WEATHER },
				{ role: 'assistant', content: called.content },
				{ role: 'user', content: [result] },
			];
			assert.ok(textOf(await finish(stream, ask('', { tools, messages }))).includes(TOLD));
		}
	},
	async thinking() {
		for (const stream of COSTLY_MODES) {
			const told = await finish(stream, ask(SUM, { max_tokens: 1500, thinking: { type: 'enabled', budget_tokens: 1024 } }));
			const [thought] = told.content;
			assert.ok(thought.type === 'thinking' && thought.thinking && thought.signature);
			// Signed, it is sent back.
			const messages = [
				{ role: 'user', content: SUM },
				{ role: 'assistant', content: told.content },
				{ role: 'user', content: 'What is 3 + 4?' },
			];
			assert.ok(textOf(await finish(stream, ask('', { messages }))).includes('7'));
		}
	},
	async structured() {
		const body = ask(SUM, { output_config: { format: zodOutputFormat(SUM_SCHEMA) } });
		for (const stream of COSTLY_MODES) {
			const told = await (stream ? client.messages.stream(body).finalMessage() : client.messages.parse(body));
			assertSum(told.parsed_output);
		}
	},
	async error() {
		for (const stream of MODES) {
			const unknown = await raises(NotFoundError, () => client.messages.create(ask(SUM, { model: 'other', stream })));
			assert.equal(unknown.error.error.type, 'not_found_error');
			await raises(BadRequestError, () => client.messages.create(ask(SUM, { top_p: 7, stream })));
			const long = await raises(BadRequestError, () => client.messages.create(ask('one two '.repeat(6000), { stream })));
			assert.match(long.message, /prompt is too long: \d+ tokens > 4096 maximum/);
		}
	},
});
