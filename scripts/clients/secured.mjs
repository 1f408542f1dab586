import { createHmac } from 'node:crypto';

export function securedKey(parent, user, validUntil) {
  const parameters = new URLSearchParams({ userToken: user, validUntil }).toString();
  const mac = createHmac('sha256', parent).update(parameters).digest('hex');
  return Buffer.from(mac + parameters).toString('base64');
}
