/**
 * The view of the tools, which models call.
 */
import { html } from "#app/core/html";
import { Plugins } from "#app/admin/plugins";

const STARTER = `"""
title: My tools
description: Says what they do
"""


class Tools:
    async def add(self, first: float, second: float) -> float:
        """
        Add two numbers.

        :param first: The first number.
        :param second: The second number.
        """
        return first + second
`;

/** @returns {unknown} the view */
export default function Tools() {
  return html`<${Plugins} key="tools" family="tools" starter=${STARTER} />`;
}
