/**
 * The view of the functions: pipes, filters and actions.
 */
import { html } from "#app/core/html";
import { Plugins } from "#app/admin/plugins";

const STARTER = `"""
title: My filter
description: Says what it does
"""
from pydantic import BaseModel


class Filter:
    class Valves(BaseModel):
        pass

    def __init__(self):
        self.valves = self.Valves()

    async def inlet(self, body: dict) -> dict:
        return body
`;

/** @returns {unknown} the view */
export default function Functions() {
  return html`<${Plugins} key="functions" family="functions" starter=${STARTER} />`;
}
