// The commands of the `openstack` client that do what the page's buttons do.

const quoted = (text) => `'${String(text).replaceAll("'", "'\\''")}'`;
const version = (api) => (api === "v2" ? " --os-tacker-api-version 2" : "");
const file = (body) => `<(echo ${quoted(JSON.stringify(body))})`;

export const create = (api, vnfdId, name) =>
  `openstack vnflcm create ${vnfdId} --name ${quoted(name)}${version(api)}`;

export const remove = ({ api, id }) => `openstack vnflcm delete ${id}${version(api)}`;

export const instantiate = ({ api, id }, body) =>
  `openstack vnflcm instantiate ${id} ${file(body)}${version(api)}`;

export const modify = ({ api, id }, body) =>
  `openstack vnflcm update ${id} --I ${file(body)}${version(api)}`;

export const changePackage = ({ api, id }, body) =>
  `openstack vnflcm change-vnfpkg ${id} ${file(body)}${version(api)}`;

const header = (api) => `-H "X-Auth-Token: $TOKEN"${api === "v2" ? " -H 'Version: 2.0.0'" : ""}`;

/** The client has no command for batches. */
export const createBatch = (api, body) =>
  `curl ${location.origin}/vnflcm/${api}/batches ${header(api)} --json ${quoted(JSON.stringify(body))}`;

/** resume or cancel of a batch. */
export const aboutBatch = ({ api, id }, request) =>
  `curl -X POST ${location.origin}/vnflcm/${api}/batches/${id}/${request} ${header(api)}`;

export const terminate = ({ api, id }) =>
  `openstack vnflcm terminate ${id} --termination-type FORCEFUL${version(api)}`;

export const heal = ({ api, id }, { vnfcInstanceId = [], cause }) => {
  const reason = cause ? ` --cause ${quoted(cause)}` : "";
  const vnfcs = vnfcInstanceId.length ? ` --vnfc-instance ${vnfcInstanceId.join(" ")}` : "";
  return `openstack vnflcm heal ${id}${reason}${vnfcs}${version(api)}`;
};

export const scale = ({ api, id }, { type, aspectId, numberOfSteps }) =>
  `openstack vnflcm scale ${id} --type ${type} --aspect-id ${quoted(aspectId)} `
  + `--number-of-steps ${numberOfSteps}${version(api)}`;

/** retry, rollback, fail or cancel of an operation. */
export const about = ({ api, id }, request) =>
  `openstack vnflcm op ${request} ${id}`
  + `${request === "cancel" ? " --cancel-mode FORCEFUL" : ""}${version(api)}`;

export const setPackageState = (id, operationalState) =>
  `openstack vnf package update --operational-state ${operationalState} ${id}`;

export const removePackage = (id) => `openstack vnf package delete ${id}`;
