// The AI SDK runs a tool for each of its providers on each model, whole and streamed; prints what came of it.
import { generateText, stepCountIs, streamText, tool } from 'ai'
import { z } from 'zod'

import { anthropic, compatible, google, openai } from './providers.mjs'

const [, , word, ...models] = process.argv
const providers = {
  anthropic: (model) => anthropic(model),
  google: (model) => google(model),
  compatible: (model) => compatible(model),
  chat: (model) => openai.chat(model),
  responses: (model) => openai(model),
}

const thinking = {
  anthropic: { thinking: { type: 'adaptive', display: 'summarized' }, effort: 'high' },
  google: { thinkingConfig: { includeThoughts: true } },
  openai: { reasoningEffort: 'high', reasoningSummary: 'auto', forceReasoning: true },
}

async function run(generate, model, providerOptions) {
  const cities = []
  const get_weather = tool({
    description: 'Tell the current weather in a city.',
    inputSchema: z.object({ city: z.string() }),
    execute: async ({ city }) => {
      cities.push(city)
      return { weather: `${word} in ${city}` }
    },
  })
  const answer = await generate({
    model,
    tools: { get_weather },
    stopWhen: stepCountIs(4),
    maxRetries: 0,
    providerOptions,
    prompt: 'What is the weather in Paris and in Tokyo?',
    onError: ({ error }) => {
      throw error
    },
  })
  const steps = await answer.steps
  return { cities: cities.sort(), text: await answer.text, steps: steps.length, finish: await answer.finishReason }
}

async function streamed(options) {
  const answer = streamText(options)
  let text = ''
  for await (const piece of answer.textStream) text += piece
  return { steps: answer.steps, finishReason: answer.finishReason, text }
}

const told = {}
for (const [name, provider] of Object.entries(providers)) {
  for (const model of models) {
    for (const [form, generate] of Object.entries({ whole: generateText, streamed })) {
      for (const [how, options] of Object.entries({ [form]: {}, [`${form} thinking`]: thinking })) {
        try {
          told[`${name} ${model} ${how}`] = await run(generate, provider(model), options)
        } catch (error) {
          told[`${name} ${model} ${how}`] = { error: `${error}\n${error.responseBody ?? ''}` }
        }
      }
    }
  }
}
console.log(JSON.stringify(told))
