"""Prices of common models: dollars for a million tokens, as their makers publish them.

Columns: model, prompt, cached prompt, written to the cache, answer; "-" where the maker has none. Prices that
grow with the prompt are the lowest ones. Names are canonical (`dialects.providers.family.canonical_name`).
"""

from typing import Final

PRICES_DATE: Final = "2026-10"
"""Month of the prices."""

PRICES: Final = {
    "openai": """
chatgpt-4o 5 - - 15
codex-mini 1.5 0.375 - 6
gpt-3.5-turbo 0.5 - - 1.5
gpt-3.5-turbo-16k 3 - - 4
gpt-3.5-turbo-instruct 1.5 - - 2
gpt-4 30 - - 60
gpt-4-32k 60 - - 120
gpt-4-turbo 10 - - 30
gpt-4.1 2 0.5 - 8
gpt-4.1-mini 0.4 0.1 - 1.6
gpt-4.1-nano 0.1 0.025 - 0.4
gpt-4.5-preview 75 37.5 - 150
gpt-4o 2.5 1.25 - 10
gpt-4o-mini 0.15 0.075 - 0.6
gpt-4o-search-preview 2.5 - - 10
gpt-5 1.25 0.125 - 10
gpt-5-mini 0.25 0.025 - 2
gpt-5-nano 0.05 0.005 - 0.4
gpt-5-pro 15 - - 120
gpt-5-search-api 1.25 0.125 - 10
gpt-5.1 1.25 0.125 - 10
gpt-5.1-codex-mini 0.25 0.025 - 2
gpt-5.2 1.75 0.175 - 14
gpt-5.2-pro 21 - - 168
gpt-5.3 1.75 0.175 - 14
gpt-5.3-codex 1.75 0.175 - 14
gpt-5.4 2.5 0.25 - 15
gpt-5.4-mini 0.75 0.075 - 4.5
gpt-5.4-nano 0.2 0.02 - 1.25
gpt-5.4-pro 30 - - 180
gpt-5.5 5 0.5 - 30
gpt-5.5-pro 30 - - 180
gpt-5.6-luna 0.2 0.02 0.25 1.2
gpt-5.6-sol 4 0.4 5 20
gpt-5.6-terra 2 0.2 2.5 12
gpt-6-astra 10 1 12.5 50
gpt-6-luna 0.1 0.01 0.125 0.5
gpt-6-sol 2 0.2 2.5 10
gpt-6.1-sol 2 0.1 2.5 10
gpt-6.1-terra 1 0.05 1.25 5
gpt-chat 5 0.5 - 30
o1 15 7.5 - 60
o1-mini 1.1 0.55 - 4.4
o1-preview 15 7.5 - 60
o1-pro 150 - - 600
o3 2 0.5 - 8
o3-deep-research 10 2.5 - 40
o3-mini 1.1 0.55 - 4.4
o3-pro 20 - - 80
o4-mini 1.1 0.275 - 4.4
o4-mini-deep-research 2 0.5 - 8
text-embedding-3-large 0.13 - - 0
text-embedding-3-small 0.02 - - 0
text-embedding-ada-002 0.1 - - 0
""",
    "anthropic": """
claude-3-5-haiku 0.8 0.08 1 4
claude-3-5-sonnet 3 0.3 3.75 15
claude-3-7-sonnet 3 0.3 3.75 15
claude-3-haiku 0.25 0.03 0.3 1.25
claude-3-opus 15 1.5 18.75 75
claude-3-sonnet 3 0.3 3.75 15
claude-fable-5 10 1 12.5 50
claude-fable-5-1 10 0.25 12.5 50
claude-fable-5-2 8 0.2 10 40
claude-haiku-4-5 1 0.1 1.25 5
claude-haiku-5-5 0.1 0.01 0.125 0.5
claude-mythos-5-2 8 0.2 10 40
claude-opus-4-0 15 1.5 18.75 75
claude-opus-4-1 15 1.5 18.75 75
claude-opus-4-5 5 0.5 6.25 25
claude-opus-4-6 5 0.5 6.25 25
claude-opus-4-7 5 0.5 6.25 25
claude-opus-4-8 5 0.5 6.25 25
claude-opus-5 5 0.5 6.25 25
claude-opus-5-5 4 0.2 5 20
claude-sonnet-4-0 3 0.3 3.75 15
claude-sonnet-4-5 3 0.3 3.75 15
claude-sonnet-4-6 3 0.3 3.75 15
claude-sonnet-5 2 0.2 2.5 10
claude-sonnet-5-5 2 0.1 2.5 10
""",
    "gemini": """
gemini-2.0-flash 0.1 0.025 - 0.4
gemini-2.0-flash-lite 0.075 - - 0.3
gemini-2.5-flash 0.3 0.03 - 2.5
gemini-2.5-flash-lite 0.1 0.01 - 0.4
gemini-2.5-flash-preview 0.15 - - 0.6
gemini-2.5-pro 1.25 0.125 - 10
gemini-3-flash-preview 0.5 0.05 - 3
gemini-3-pro-preview 2 0.2 - 12
gemini-3.1-flash-lite 0.25 0.025 - 1.5
gemini-3.1-pro-preview 2 0.2 - 12
gemini-3.5-flash 1.5 0.15 - 9
gemini-3.5-flash-lite 0.3 0.03 - 2.5
gemini-3.6-flash 0.75 0.075 - 3.75
gemini-3.7-flash 0.75 0.075 - 3.75
gemini-3.8-flash 0.75 0.075 - 3.75
gemini-4-argon 2 0.1 - 10
gemini-embedding-2 0.2 - - 0
""",
    "mistral": """
codestral 0.3 - - 0.9
codestral-2508 0.3 0.03 - 0.9
codestral-embed-2505 0.15 0.015 - 0
devstral-2512 0.4 0.04 - 2
devstral-small 0.1 - - 0.3
magistral-medium 2 - - 5
magistral-small 0.5 - - 1.5
ministral-14b-2512 0.2 0.02 - 0.2
ministral-3b 0.04 - - 0.04
ministral-3b-2512 0.1 0.01 - 0.1
ministral-8b 0.1 - - 0.1
ministral-8b-2512 0.15 0.015 - 0.15
mistral-embed 0.1 - - 0.1
mistral-large 2 - - 6
mistral-large-2512 0.5 0.05 - 1.5
mistral-large-4 0.7 0.07 - 2.1
mistral-medium 1.5 0.15 - 7.5
mistral-medium-2312 2.7 - - 8.1
mistral-medium-3-1 0.4 0.04 - 2
mistral-medium-3-5 1.5 0.15 - 7.5
mistral-small 0.15 0.015 - 0.6
mistral-small-2603 0.15 0.015 - 0.6
pixtral-12b 0.15 - - 0.15
pixtral-large 2 - - 6
""",
    "deepseek": """
deepseek-flash 0.15 0.003 - 0.6
deepseek-v4-flash 0.15 0.003 - 0.6
deepseek-v4-pro 0.66 0.022 - 1.98
""",
    "xai": """
grok-3 3 0.75 - 15
grok-3-fast 5 1.25 - 25
grok-3-mini 0.3 0.075 - 0.5
grok-3-mini-fast 0.6 0.15 - 4
grok-4-0709 3 0.75 - 15
grok-4-1-fast-non-reasoning 0.2 0.05 - 0.5
grok-4-1-fast-reasoning 0.2 0.05 - 0.5
grok-4-fast-non-reasoning 0.2 0.05 - 0.5
grok-4-fast-reasoning 0.2 0.05 - 0.5
grok-4.20 1.25 0.2 - 2.5
grok-4.20-multi-agent-0309 1.25 0.2 - 2.5
grok-4.3 1.25 0.2 - 2.5
grok-4.5 2 0.3 - 6
grok-4.6 2 0.5 - 6
grok-4.7 2 0.5 - 6
grok-build-0.1 1 0.2 - 2
grok-code-fast-1 0.2 0.02 - 1.5
""",
    "groq": """
deepseek-r1-distill-llama-70b 0.75 - - 0.99
gpt-oss-120b 0.15 0.075 - 0.6
gpt-oss-20b 0.075 0.0375 - 0.3
kimi-k2-instruct 1 0.5 - 3
llama-3.1-405b-reasoning 0.59 - - 0.79
llama-3.1-70b-versatile 0.59 - - 0.79
llama-3.1-8b-instant 0.05 - - 0.08
llama-3.2-1b-preview 0.04 - - 0.04
llama-3.2-3b-preview 0.06 - - 0.06
llama-3.3-70b-specdec 0.59 - - 0.99
llama-3.3-70b-versatile 0.59 - - 0.79
llama-4-maverick-17b-128e-instruct 0.2 - - 0.6
llama-4-scout-17b-16e-instruct 0.11 - - 0.34
qwen3-32b 0.29 - - 0.59
qwen3.8-27b 0.8 - - 4
""",
    "cohere": """
command-a 2.5 - - 10
command-r 0.15 - - 0.6
command-r-plus 2.5 - - 10
command-r7b 0.0375 - - 0.15
embed-v4.0 0.12 - - 0
""",
    "kimi": """
kimi-k2 0.57 - - 2.3
kimi-k2-0711-preview 0.6 0.15 - 2.5
kimi-k2-0905-preview 0.6 0.15 - 2.5
kimi-k2-thinking 0.6 0.15 - 2.5
kimi-k2-thinking-turbo 1.15 0.15 - 8
kimi-k2-turbo-preview 1.15 0.15 - 8
kimi-k2.5 0.6 0.1 - 3
kimi-k2.6 0.95 0.16 - 4
kimi-k2.7-code 0.95 0.19 - 4
kimi-k2.7-code-highspeed 1.9 0.38 - 8
kimi-k3 3 0.3 3 15
kimi-k3.1-pro 2 0.2 2 10
kimi-k3.1-pro-highspeed 4 0.2 4 20
moonshot-v1-128k 2 - - 5
moonshot-v1-32k 1 - - 3
moonshot-v1-8k 0.2 - - 2
""",
}
"""The tables of the makers, by their names in the rules of providers."""
