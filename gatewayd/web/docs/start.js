// Opens the viewer on the description that the gateway makes of its own route rows.
window.SwaggerUIBundle({ url: "/openapi.json", dom_id: "#docs", validatorUrl: null, deepLinking: true });
