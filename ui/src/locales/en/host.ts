/** Errors and notices of the host, by their code. `{message}` is the host’s own sentence; one code may have many. */
export const host = {

  'notice.thought_while_off': 'The model was thinking although Thinking is off. Its thinking isn’t part of the response.',
  'notice.thinking_truncated': 'The response ended during thinking.',
  'notice.thinking_ended': 'You stopped the thinking here.',
  'notice.thinking_ended.budget': { one: 'Thinking stopped at its budget of {count} token.', other: 'Thinking stopped at its budget of {count} tokens.' },
  'notice.broken_tool_call': 'The model didn’t finish a tool call. It’s shown as text.',
  'notice.unknown_tool': 'The model called {name}, which it wasn’t offered. The call is shown as text.',
  'notice.repeats': 'The response repeats itself.',
  'notice.repetition': 'The response kept repeating itself and was stopped.',
  'notice.kv_bits': {
    one: '{count} layer can’t be quantized and keeps full precision.',
    other: '{count} layers can’t be quantized and keep full precision.',
  },
  'notice.thinking_switch_ignored': 'This endpoint ignores the Thinking setting. Ask for more or less thinking in your message.',
  'notice.thinking_budget_ignored': 'Endpoints don’t support a thinking budget.',
  'notice.field_refused': 'The endpoint rejected “{field}”, so it was left out.',
  'notice.media_not_seen': 'This model doesn’t support files. It received only their names.',
  'notice.image_left_out': {
    one: '{count} image wasn’t sent to the model. It received only the name.',
    other: '{count} images weren’t sent to the model. It received only their names.',
  },
  'notice.image_resized': 'The model received {name} at {width} × {height} instead of {original_width} × {original_height} pixels.',
  'notice.image_animated': '{name} is animated. The model received only its first frame.',
  'notice.draft_model_unused': 'The draft model wasn’t used: {reason}.',
  'notice.unknown': '{message}',
} as const;
