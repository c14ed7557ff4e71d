// The certified provider oidc-provider: each line of the input configures it anew for one gateway.
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const folder = process.argv[2];
const reply = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
// The provider writes its notices to the standard output, which is for our replies.
console.info = console.log = console.error;
const { Provider } = await import(
  pathToFileURL(`${folder}/node_modules/oidc-provider/lib/index.js`).href
);
let callback = (request, response) => response.writeHead(503).end();
const server = createServer((request, response) => callback(request, response));
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  reply({ issuer });
  createInterface({ input: process.stdin }).on("line", (line) => {
    callback = provider(issuer, JSON.parse(line)).callback();
    reply({});
  });
});
process.stdin.on("end", () => process.exit(0));

let issued = 0;

function provider(issuer, { gateway, secret, people }) {
  const made = new Provider(issuer, {
    clients: [{
      client_id: "gateway",
      client_secret: secret,
      redirect_uris: [`${gateway}/oauth/oidc/callback`],
      post_logout_redirect_uris: [`${gateway}/auth`],
      backchannel_logout_uri: `${gateway}/oauth/backchannel-logout`,
      backchannel_logout_session_required: true,
      grant_types: ["authorization_code", "refresh_token"],
    }],
    claims: {
      openid: ["sub", "groups", "roles", "oid"],
      email: ["email", "email_verified"],
      profile: ["name"],
    },
    // So short that the gateway refreshes an access token before each use, which it does once for each expiry.
    ttl: { AccessToken: () => 20 + (issued++ % 20) },
    features: { backchannelLogout: { enabled: true } },
    findAccount: (context, id) => ({
      accountId: id,
      claims: () => ({ sub: id, ...people[id] }),
    }),
    // Its guard against internal addresses would refuse the gateway, which is on loopback too.
    fetch: (url, options) => {
      delete options.dispatcher;
      options.signal = AbortSignal.timeout(5000);
      return globalThis.fetch(url, options);
    },
  });
  return made;
}
